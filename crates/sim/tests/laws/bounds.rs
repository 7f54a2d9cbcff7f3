//! Law 2: window and pacer are asked first.
