//! Credit: source symbols of blocks that a sender may have started, absolute and connection-wide (design laws 4, section 10).

/// The sender's side.
#[derive(Clone, Copy, Debug, Default)]
pub struct SendCredit {
    granted: u64,
    started: u64,
}

impl SendCredit {
    /// The peer's absolute grant; older, smaller ones change nothing.
    pub fn grant(&mut self, symbols: u64) {
        self.granted = self.granted.max(symbols);
    }

    /// Starts a block of `k` symbols, if the grant covers it.
    pub fn take(&mut self, k: u32) -> bool {
        let after = self.started + u64::from(k);
        let covered = after <= self.granted;
        if covered {
            self.started = after;
        }
        covered
    }

    /// Symbols that may still be started.
    pub const fn left(&self) -> u64 {
        self.granted - self.started
    }

    /// Whether a block of `k` symbols could be started.
    pub fn covers(&self, k: u32) -> bool {
        self.started + u64::from(k) <= self.granted
    }
}

/// The receiver's side: what it grants is what it has room for, beyond what it has written.
#[derive(Clone, Copy, Debug)]
pub struct ReceiveCredit {
    room: u64,
    started: u64,
    returned: u64,
}

impl ReceiveCredit {
    /// Room for `room` source symbols that are started and not written.
    pub const fn new(room: u64) -> Self {
        Self { room, started: 0, returned: 0 }
    }

    /// Symbols that may be started and not given back.
    pub const fn room(&self) -> u64 {
        self.room
    }

    /// Symbols that are started and not given back.
    pub const fn outstanding(&self) -> u64 {
        self.started - self.returned
    }

    /// Room for so many symbols more.
    pub const fn grow(&mut self, symbols: u64) {
        self.room += symbols;
    }

    /// The absolute grant.
    pub const fn granted(&self) -> u64 {
        self.room + self.returned
    }

    /// A block of `k` symbols begins; false when the sender had no credit for it.
    pub fn start(&mut self, k: u32) -> bool {
        let after = self.started + u64::from(k);
        let covered = after <= self.granted();
        if covered {
            self.started = after;
        }
        covered
    }

    /// Blocks of so many symbols in all are written, or will never be.
    pub fn give_back_symbols(&mut self, symbols: u64) {
        self.returned += symbols;
    }
}
