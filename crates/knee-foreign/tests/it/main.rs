//! Tests of the readers, over files of our own making in the formats of those who publish them.

mod access;
mod datasets;
mod measured;
mod pages;
mod tables;
mod videos;
mod wrong;
