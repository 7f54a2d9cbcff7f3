//! The interface under every kernel: a register of elements of GF(256).

/// A vector register, and the few operations that the codes need.
///
/// A kernel is a generic `#[inline(always)] unsafe fn body<V: Vector>`, and the macro `dispatch!` makes one instance of
/// it per instruction set. Each method here is inlined into that instance, the only place where the instructions are
/// enabled. So a body keeps its vectors out of closures, which are separate functions and would not be compiled with
/// them.
pub(crate) trait Vector: Copy {
    /// Bytes in a register.
    const BYTES: usize;

    /// An element of GF(256), prepared as a multiplier.
    type Factor: Copy;

    /// All zeros.
    ///
    /// # Safety
    ///
    /// The CPU has the instructions of this vector, as for every other method.
    unsafe fn zero() -> Self;

    /// Reads [`Self::BYTES`] bytes of any alignment.
    ///
    /// # Safety
    ///
    /// The CPU has the instructions; the bytes may be read.
    unsafe fn load(from: *const u8) -> Self;

    /// Writes [`Self::BYTES`] bytes of any alignment.
    ///
    /// # Safety
    ///
    /// The CPU has the instructions; the bytes may be written.
    unsafe fn store(self, to: *mut u8);

    /// Returns the sum in GF(256) of each byte with its counterpart.
    ///
    /// # Safety
    ///
    /// The CPU has the instructions.
    unsafe fn xor(self, other: Self) -> Self;

    /// Prepares `value` as a multiplier.
    ///
    /// # Safety
    ///
    /// The CPU has the instructions.
    unsafe fn factor(value: u8) -> Self::Factor;

    /// Returns the product in GF(256) of every byte with `by`.
    ///
    /// # Safety
    ///
    /// The CPU has the instructions.
    unsafe fn multiply(self, by: Self::Factor) -> Self;
}

/// The widest register of all instruction sets, in bytes.
const WIDEST: usize = 64;

/// Returns a vector of the first `bytes` bytes at `from`, then zeros.
///
/// # Safety
///
/// The CPU has the instructions of `V`; `bytes` is at most [`Vector::BYTES`], and that many may be read.
#[inline(always)]
pub(super) unsafe fn load_up_to<V: Vector>(from: *const u8, bytes: usize) -> V {
    if bytes == V::BYTES {
        // SAFETY: the caller guarantees it.
        return unsafe { V::load(from) };
    }
    let mut whole = [0; WIDEST];
    // SAFETY: the caller guarantees that the bytes may be read, and they fit: no register is wider than `whole`.
    unsafe {
        std::ptr::copy_nonoverlapping(from, whole.as_mut_ptr(), bytes);
        V::load(whole.as_ptr())
    }
}

/// Writes the first `bytes` bytes of `vector`.
///
/// # Safety
///
/// The CPU has the instructions of `V`; `bytes` is at most [`Vector::BYTES`], and that many may be written.
#[inline(always)]
pub(super) unsafe fn store_up_to<V: Vector>(vector: V, to: *mut u8, bytes: usize) {
    if bytes == V::BYTES {
        // SAFETY: the caller guarantees it.
        return unsafe { vector.store(to) };
    }
    let mut whole = [0; WIDEST];
    // SAFETY: no register is wider than `whole`, and the caller guarantees that the bytes may be written.
    unsafe {
        vector.store(whole.as_mut_ptr());
        std::ptr::copy_nonoverlapping(whole.as_ptr(), to, bytes);
    }
}
