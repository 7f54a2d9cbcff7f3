//! Law 5: no encoder and no decoder at zero loss.
