//! Empty: there is only the test.
