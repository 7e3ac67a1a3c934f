//! Two logs, as our store has them, with the settings that an adaptive rule chooses among.

use super::ring::Ring;
use crate::hit_ratio::trace::{Cache, Item};

/// The small log has this fraction (1 / n) of the capacity.
const SMALL_DIVISOR: u64 = 10;
/// Uses are counted up to this number.
const USES_MAX: u8 = 3;
/// The mean size follows from about this many stores.
const SIZES_REMEMBERED: f64 = 4096.0;

/// What becomes of new items, and of those that reach the head of a log.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Setting {
    /// New items in a hundred that enter the main log at once. With 90 each log receives its share
    /// of them, and every item stays as long as in one log.
    pub direct_percent: u8,
    /// Uses that an item needs to stay when it reaches the head of its log.
    pub uses_needed: u8,
    /// Whether an item that goes round the main log again begins without uses, or has one less.
    pub forgets: bool,
    /// How long a key that left the small log is known: until as much left it since as this
    /// percentage of the capacity.
    pub known_percent: u8,
}

/// A small log for new items, a main log with reinsertion, and the keys that left the small log.
///
/// Small items count as used when they arrive: once for each time that they could be doubled up to
/// the mean size, up to three times. Beyond that they lose a use in every second lap, every fourth,
/// and so on. Large items need one more use for each halving down to the mean. So memory goes to
/// those with the most hits for their bytes.
pub(super) struct TwoLogs {
    capacity: u64,
    small_capacity: u64,
    small: Ring,
    main: Ring,
    /// Keys that left the small log; as heavy as the main log may be.
    ghosts: Ring,
    /// The weight of all that ever left the small log, and how much it was when each key left.
    departed: u64,
    departed_at: Vec<u64>,
    uses: Vec<u8>,
    setting: Setting,
    /// Hundredths of the next new item that are to go to the main log.
    direct_due: u8,
    mean_weight: f64,
    stores: f64,
    laps: u32,
}

impl TwoLogs {
    pub(super) fn new(capacity: u64, key_bound: u32, setting: Setting) -> Self {
        TwoLogs {
            capacity,
            small_capacity: (capacity / SMALL_DIVISOR).max(1),
            small: Ring::new(key_bound),
            main: Ring::new(key_bound),
            ghosts: Ring::new(key_bound),
            departed: 0,
            departed_at: vec![0; key_bound as usize],
            uses: vec![0; key_bound as usize],
            setting,
            direct_due: 0,
            mean_weight: 0.0,
            stores: 0.0,
            laps: 0,
        }
    }

    pub(super) fn set(&mut self, setting: Setting) {
        self.setting = setting;
    }

    pub(super) fn contains(&self, key: u32) -> bool {
        self.small.contains(key) || self.main.contains(key)
    }

    fn main_capacity(&self) -> u64 {
        self.capacity - self.small_capacity
    }

    /// Doublings from an item's weight to the mean; negative if it is heavier.
    fn doublings(&self, weight: u32) -> i32 {
        (self.mean_weight / f64::from(weight)).log2().trunc() as i32
    }

    fn first_uses(&self, weight: u32) -> u8 {
        self.doublings(weight).clamp(0, USES_MAX.into()) as u8
    }

    fn stays(&self, key: u32, weight: u32) -> bool {
        let more = -self.doublings(weight).min(0);
        i32::from(self.uses[key as usize]) >= i32::from(self.setting.uses_needed) + more
    }

    /// An item goes round the main log once more.
    fn note_lap(&mut self, key: u32, weight: u32) {
        self.laps = self.laps.wrapping_add(1);
        let rare = (self.doublings(weight) - i32::from(USES_MAX)).clamp(0, 16);
        let draw = self.laps.wrapping_mul(0x9e37_79b9) >> 16;
        if draw & ((1 << rare) - 1) == 0 {
            let uses = &mut self.uses[key as usize];
            *uses = if self.setting.forgets { 0 } else { *uses - 1 };
        }
    }

    fn enter_main(&mut self, key: u32, weight: u32) {
        while self.main.weight() + u64::from(weight) > self.main_capacity() {
            let (oldest, weight) = self.main.take_oldest().expect("it has a weight");
            if self.stays(oldest, weight) {
                self.note_lap(oldest, weight);
                self.main.push_newest(oldest, weight);
            }
        }
        self.uses[key as usize] = self.first_uses(weight);
        self.main.push_newest(key, weight);
    }

    fn enter_small(&mut self, key: u32, weight: u32) {
        while self.small.weight() + u64::from(weight) > self.small_capacity {
            let (oldest, weight) = self.small.take_oldest().expect("it has a weight");
            let main_has_room = self.main.weight() + u64::from(weight) <= self.main_capacity();
            if main_has_room || self.stays(oldest, weight) {
                self.enter_main(oldest, weight);
            } else {
                self.ghosts.take(oldest);
                self.ghosts.push_newest(oldest, weight);
                self.departed += u64::from(weight);
                self.departed_at[oldest as usize] = self.departed;
                while self.ghosts.weight() > self.main_capacity() {
                    self.ghosts.take_oldest();
                }
            }
        }
        self.uses[key as usize] = self.first_uses(weight);
        self.small.push_newest(key, weight);
    }

    /// Whether the key left the small log not long ago. It is asked once.
    fn takes_ghost(&mut self, key: u32) -> bool {
        let since = self.departed - self.departed_at[key as usize];
        let known = self.capacity * u64::from(self.setting.known_percent) / 100;
        self.ghosts.take(key).is_some() && since <= known
    }

    fn learn_size(&mut self, weight: u32) {
        self.stores = (self.stores + 1.0).min(SIZES_REMEMBERED);
        self.mean_weight += (f64::from(weight) - self.mean_weight) / self.stores;
    }

    /// Whether the next new item enters the main log at once.
    fn is_next_direct(&mut self) -> bool {
        self.direct_due += self.setting.direct_percent;
        let is_direct = self.direct_due >= 100;
        self.direct_due %= 100;
        is_direct
    }
}

impl Cache for TwoLogs {
    fn read(&mut self, key: u32) -> bool {
        let hit = self.contains(key);
        if hit {
            self.uses[key as usize] = (self.uses[key as usize] + 1).min(USES_MAX);
        }
        hit
    }

    fn write(&mut self, key: u32, item: Item) {
        self.learn_size(item.weight);
        let same = |ring: &Ring| ring.contains(key) && ring.weight_of(key) == item.weight;
        if same(&self.small) || same(&self.main) {
            self.read(key);
            return;
        }
        let was_main = self.main.contains(key);
        self.remove(key);
        if u64::from(item.weight) > self.main_capacity() {
            return;
        }
        let is_large = u64::from(item.weight) > self.small_capacity;
        // A ghost stays one, as in an index where the entry of the new item takes another place.
        let is_known = self.takes_ghost(key) || was_main;
        if is_large || is_known || self.is_next_direct() {
            self.enter_main(key, item.weight);
        } else {
            self.enter_small(key, item.weight);
        }
    }

    fn remove(&mut self, key: u32) {
        self.small.take(key);
        self.main.take(key);
    }

    fn weight(&self) -> u64 {
        self.small.weight() + self.main.weight()
    }
}
