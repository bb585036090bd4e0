//! Random numbers, a stream for each game.

/// A stream of random numbers (SplitMix64). Games draw from their own, so that
/// what happens in one depends on no other game and on no thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Stream(u64);

impl Stream {
    /// The stream of a seed. Neighbouring seeds give unrelated streams.
    pub(crate) fn new(seed: u64) -> Stream {
        Stream(mix(seed ^ 0x6b61_7472_6f00_0000)) // "katro"
    }

    /// Where the stream stands.
    pub(crate) fn state(self) -> u64 {
        self.0
    }

    /// The stream that stands where [`Stream::state`] says.
    pub(crate) fn from_state(state: u64) -> Stream {
        Stream(state)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number below `n`, all equally likely to within `n` in 2^32.
    #[inline(always)]
    pub(crate) fn below(&mut self, n: u32) -> u32 {
        (((self.next() >> 32) * u64::from(n)) >> 32) as u32
    }
}

#[inline(always)]
fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}
