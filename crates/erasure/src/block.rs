//! The buffer of a source block.

/// A buffer of `k` source symbols of `symbol_size` bytes, contiguous, with flags for the present ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    k: u32,
    symbol_size: usize,
    present: u32,
    /// Bit `esi % 64` of word `esi / 64` is set where the symbol is present.
    map: Vec<u64>,
    buffer: Vec<u8>,
}

impl Block {
    /// Creates a block with no symbol present, in `buffer`, whose content is kept: the bytes of a missing symbol are
    /// unspecified.
    #[must_use]
    pub fn new_missing(k: u32, symbol_size: usize, mut buffer: Vec<u8>) -> Self {
        buffer.resize(k as usize * symbol_size, 0);
        Self { k, symbol_size, present: 0, map: vec![0; k.div_ceil(64) as usize], buffer }
    }

    /// Creates a block with every symbol present, for a sender. The caller has zeroed the bytes between its data and
    /// the end of the last symbol.
    #[must_use]
    pub fn new_complete(k: u32, symbol_size: usize, buffer: Vec<u8>) -> Self {
        let mut block = Self::new_missing(k, symbol_size, buffer);
        block.set_complete();
        block
    }

    /// Returns the number of source symbols.
    #[must_use]
    pub fn k(&self) -> u32 {
        self.k
    }

    /// Returns the bytes in a symbol.
    #[must_use]
    pub fn symbol_size(&self) -> usize {
        self.symbol_size
    }

    /// Returns source symbol `esi`, or `None` if it is missing or does not exist.
    #[must_use]
    pub fn symbol(&self, esi: u32) -> Option<&[u8]> {
        if !self.is_present(esi) {
            return None;
        }
        let start = esi as usize * self.symbol_size;
        Some(&self.buffer[start..start + self.symbol_size])
    }

    /// Copies a source symbol in. Returns false, and changes nothing, if it is present already, does not exist or has
    /// the wrong length.
    pub fn insert(&mut self, esi: u32, symbol: &[u8]) -> bool {
        if esi >= self.k || symbol.len() != self.symbol_size || self.is_present(esi) {
            return false;
        }
        let start = esi as usize * self.symbol_size;
        self.buffer[start..start + self.symbol_size].copy_from_slice(symbol);
        self.map[esi as usize / 64] |= 1 << (esi % 64);
        self.present += 1;
        true
    }

    /// Returns whether source symbol `esi` is present.
    #[must_use]
    pub fn is_present(&self, esi: u32) -> bool {
        esi < self.k && self.map[esi as usize / 64] >> (esi % 64) & 1 == 1
    }

    /// Returns how many source symbols are present.
    #[must_use]
    pub fn present_count(&self) -> u32 {
        self.present
    }

    /// Returns whether every source symbol is present.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.present == self.k
    }

    /// Iterates over the missing source symbols, in ascending order.
    pub fn missing(&self) -> impl Iterator<Item = u32> {
        self.map.iter().zip((0..self.k).step_by(64)).filter(|&(&word, _)| word != u64::MAX).flat_map(
            |(&word, first)| {
                (0..64.min(self.k - first)).filter(move |bit| word >> bit & 1 == 0).map(move |bit| first + bit)
            },
        )
    }

    /// Returns the whole buffer, `k * symbol_size` bytes; the bytes of missing symbols are unspecified.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.buffer
    }

    /// Returns the buffer, for reuse.
    #[must_use]
    pub fn into_buffer(self) -> Vec<u8> {
        self.buffer
    }

    /// Returns the present symbols, and the positions of the missing ones, in ascending order.
    pub(crate) fn split_missing(&mut self) -> (Vec<Option<&[u8]>>, Vec<&mut [u8]>) {
        let (mut present, mut missing) = (Vec::with_capacity(self.k as usize), Vec::new());
        for (esi, symbol) in self.buffer.chunks_exact_mut(self.symbol_size).enumerate() {
            if self.map[esi / 64] >> (esi % 64) & 1 == 1 {
                present.push(Some(&*symbol));
            } else {
                present.push(None);
                missing.push(symbol);
            }
        }
        (present, missing)
    }

    /// Declares every symbol present, once the missing ones have been written.
    pub(crate) fn set_complete(&mut self) {
        self.map.fill(u64::MAX);
        if !self.k.is_multiple_of(64)
            && let Some(last) = self.map.last_mut()
        {
            *last = (1 << (self.k % 64)) - 1;
        }
        self.present = self.k;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_are_accepted_once_and_only_if_they_fit() {
        let mut block = Block::new_missing(3, 2, Vec::new());
        assert!(block.insert(1, &[7, 8]));
        assert!(!block.insert(1, &[9, 9]), "present already");
        assert!(!block.insert(3, &[9, 9]), "does not exist");
        assert!(!block.insert(u32::MAX, &[9, 9]), "does not exist");
        assert!(!block.insert(0, &[9]), "too short");
        assert!(!block.insert(0, &[9, 9, 9]), "too long");
        assert_eq!(block.symbol(1), Some(&[7, 8][..]));
        assert_eq!(block.symbol(0), None);
        assert_eq!(block.symbol(3), None);
        assert_eq!(block.present_count(), 1);
        assert_eq!(block.missing().collect::<Vec<_>>(), [0, 2]);
        assert!(block.insert(0, &[1, 2]) && block.insert(2, &[3, 4]));
        assert!(block.is_complete());
        assert_eq!(block.missing().count(), 0);
        assert_eq!(block.into_buffer(), [1, 2, 7, 8, 3, 4]);
    }

    #[test]
    fn a_long_buffer_is_taken_as_it_is() {
        let buffer = vec![5; 1000];
        let address = buffer.as_ptr();
        let block = Block::new_missing(10, 50, buffer);
        assert_eq!((block.bytes().as_ptr(), block.bytes().len()), (address, 500));
        assert_eq!(block.bytes(), [5; 500], "not zeroed");
        assert_eq!((block.present_count(), block.is_complete()), (0, false));
    }

    #[test]
    fn the_map_is_exact_around_its_words() {
        for k in [1, 63, 64, 65, 127, 128, 129, 1000] {
            let mut block = Block::new_complete(k, 1, vec![3; k as usize]);
            assert_eq!((block.present_count(), block.missing().count()), (k, 0), "k {k}");
            assert!(block.is_present(k - 1) && !block.is_present(k), "k {k}");
            assert!(!block.insert(k - 1, &[4]), "k {k}");
            block = Block::new_missing(k, 1, block.into_buffer());
            assert_eq!(block.missing().collect::<Vec<_>>(), (0..k).collect::<Vec<_>>(), "k {k}");
        }
    }
}
