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

/// One stream's use of credit, as either side counts it: symbols started and not read. Up to `own` they are the stream's alone;
/// what lies above comes out of a store that all streams of a direction share.
#[derive(Clone, Copy, Debug)]
pub struct StreamUse {
    own: u64,
    started: u64,
    read: u64,
}

impl StreamUse {
    /// Nothing is started.
    pub const fn new(own: u32) -> Self {
        Self { own: own as u64, started: 0, read: 0 }
    }

    /// Symbols started and not read.
    pub const fn outstanding(&self) -> u64 {
        self.started - self.read
    }

    /// Symbols out of the shared store.
    pub const fn shared(&self) -> u64 {
        self.outstanding().saturating_sub(self.own)
    }

    /// Symbols that may be started when `shared` may come out of the store in all.
    pub const fn left(&self, shared: u64) -> u64 {
        (self.own + shared).saturating_sub(self.outstanding())
    }

    /// Symbols of its own.
    pub const fn own(&self) -> u64 {
        self.own
    }

    /// Symbols read so far.
    pub const fn read(&self) -> u64 {
        self.read
    }

    /// Symbols started so far.
    pub const fn started(&self) -> u64 {
        self.started
    }

    /// A block of so many symbols begins.
    pub const fn start(&mut self, symbols: u64) {
        self.started += symbols;
    }

    /// So many symbols are read in all; a number that is no news, or of what was never started, changes nothing.
    pub const fn note_read(&mut self, symbols: u64) {
        if symbols > self.read && symbols <= self.started {
            self.read = symbols;
        }
    }
}
