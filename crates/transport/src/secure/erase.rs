//! Erases secrets from memory.
//!
//! The owner of a secret overwrites it on drop. Secrets are kept on the heap and moved as pointers, since moving the
//! bytes would leave a copy behind. The stack is overwritten after computations with secrets, including those of other
//! crates.

use std::hint::black_box;

/// Number of stack bytes to overwrite: several times the need of a handshake.
const STACK: usize = 64 << 10;

/// Runs `work`, which keeps secrets on its stack, and then overwrites that part of the stack. The result must not
/// contain a secret, except on the heap.
pub fn with_clean_stack<T>(work: impl FnOnce() -> T) -> T {
    let result = apart(work);
    overwrite_stack();
    result
}

/// Runs `work` in a separate stack frame below the caller's.
#[inline(never)]
fn apart<T>(work: impl FnOnce() -> T) -> T {
    work()
}

#[inline(never)]
fn overwrite_stack() {
    let mut stack = [0_u8; STACK];
    // Keeps the compiler from removing the write.
    black_box(&mut stack);
}
