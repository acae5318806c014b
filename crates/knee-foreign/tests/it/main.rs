//! Tests of the readers, over files of our own making in the formats of those who publish them.

mod access;
mod datasets;
mod measured;
mod tables;
mod wrong;
