//! Reed-Solomon of ISA-L, Intel's library, loaded at run time if the system has it: the build does not need it.

use std::ffi::{c_int, c_uchar};

use libloading::Library;

use xtask::failure::Failure;

/// In Debian's package libisal2.
const NAME: &str = "libisal.so.2";
pub(super) const ABSENT: &str = "ISA-L is not installed (apt-get install libisal2)";

type MakeMatrix = unsafe extern "C" fn(*mut c_uchar, c_int, c_int);
type InitTables = unsafe extern "C" fn(c_int, c_int, *const c_uchar, *mut c_uchar);
type EncodeData = unsafe extern "C" fn(c_int, c_int, c_int, *const c_uchar, *const *const c_uchar, *const *mut c_uchar);
type InvertMatrix = unsafe extern "C" fn(*mut c_uchar, *mut c_uchar, c_int) -> c_int;

/// The used functions of its `erasure_code.h`.
pub(super) struct IsaL {
    make_cauchy: MakeMatrix,
    init_tables: InitTables,
    encode_data: EncodeData,
    invert: InvertMatrix,
    /// Keeps the library loaded.
    _library: Library,
}

#[expect(unsafe_code, reason = "a C library is called, which is not linked at build time")]
impl IsaL {
    /// Loads it; `None` if the system does not have it.
    pub(super) fn load() -> Option<Self> {
        // SAFETY: the library's initialiser only inspects the processor, and the types are those of its header.
        unsafe {
            let library = Library::new(NAME).ok()?;
            Some(Self {
                make_cauchy: *library.get(b"gf_gen_cauchy1_matrix\0").ok()?,
                init_tables: *library.get(b"ec_init_tables\0").ok()?,
                encode_data: *library.get(b"ec_encode_data\0").ok()?,
                invert: *library.get(b"gf_invert_matrix\0").ok()?,
                _library: library,
            })
        }
    }

    /// The rows of a code with these numbers of source and repair symbols: the unit matrix, and below it a Cauchy
    /// matrix.
    pub(super) fn matrix(&self, k: usize, repairs: usize) -> Vec<u8> {
        let mut matrix = vec![0; (k + repairs) * k];
        // SAFETY: it writes k + repairs rows of k bytes.
        unsafe { (self.make_cauchy)(matrix.as_mut_ptr(), int(k + repairs), int(k)) };
        matrix
    }

    /// Rows of `k` coefficients, prepared for [`IsaL::combine`].
    pub(super) fn tables(&self, rows: &[u8], k: usize) -> Vec<u8> {
        let mut tables = vec![0; rows.len() * 32];
        // SAFETY: it reads rows.len() coefficients and writes 32 bytes for each.
        unsafe { (self.init_tables)(int(k), int(rows.len() / k), rows.as_ptr(), tables.as_mut_ptr()) };
        tables
    }

    /// Each output becomes the sum of the inputs, times its row of coefficients.
    pub(super) fn combine(&self, tables: &[u8], inputs: &[&[u8]], outputs: &mut [Vec<u8>]) {
        let length = inputs.first().map_or(0, |input| input.len());
        assert!(inputs.iter().all(|input| input.len() == length) && outputs.iter().all(|out| out.len() == length));
        assert_eq!(tables.len(), 32 * inputs.len() * outputs.len(), "tables of other rows");
        let from: Vec<*const u8> = inputs.iter().map(|input| input.as_ptr()).collect();
        let to: Vec<*mut u8> = outputs.iter_mut().map(|output| output.as_mut_ptr()).collect();
        let (inputs, outputs) = (int(from.len()), int(to.len()));
        // SAFETY: it reads `length` bytes of each input, writes as many to each output, and reads the tables checked
        // above.
        unsafe { (self.encode_data)(int(length), inputs, outputs, tables.as_ptr(), from.as_ptr(), to.as_ptr()) };
    }

    /// The inverse of a square matrix.
    pub(super) fn inverse(&self, mut matrix: Vec<u8>, k: usize) -> Result<Vec<u8>, Failure> {
        assert_eq!(matrix.len(), k * k, "a square matrix");
        let mut inverse = vec![0; k * k];
        // SAFETY: both matrices have k rows of k bytes.
        let singular = unsafe { (self.invert)(matrix.as_mut_ptr(), inverse.as_mut_ptr(), int(k)) };
        if singular == 0 { Ok(inverse) } else { Err(Failure::new("ISA-L: a Cauchy matrix without an inverse")) }
    }
}

fn int(number: usize) -> c_int {
    c_int::try_from(number).expect("the codes are small")
}
