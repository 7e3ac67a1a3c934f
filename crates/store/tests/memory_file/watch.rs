//! Watches the stores of this thread to a mapped file.
//!
//! The mappings are made read-only, so that each store raises SIGSEGV. The handler makes them
//! writable and has the processor stop after the next instruction, which is the store. That raises
//! SIGTRAP, whose handler notes what has changed and makes the mappings read-only again.
//!
//! The stores come in the order that this compiler has chosen. Where debug assertions are compiled,
//! each also says between which two calls of `in_program_order` it was made: another compiler, or
//! the same one tomorrow, may choose another order of those that are between the same two.

use super::copy::data_pages;
#[cfg(debug_assertions)]
use glimmer_base::sync::order_points;
use std::collections::BTreeSet;
use std::ffi::{c_int, c_void};
use std::fs::File;
use std::panic::Location;
use std::path::Path;
use std::sync::atomic::{AtomicPtr, Ordering::SeqCst};
use std::sync::{Mutex, MutexGuard};

pub const PAGE: usize = 4096;
/// The flag by which the processor stops after an instruction.
const TRAP: i64 = 1 << 8;
/// Words that one request may change.
const WORDS_MAX: usize = 4 << 20;

/// A change of one word.
#[derive(Clone, Copy, Debug)]
struct Change {
    /// The store that made it.
    step: usize,
    word: usize,
    value: u64,
}

/// What one store changed.
pub struct Step {
    changes: Vec<(usize, u64)>,
    /// How many calls of `in_program_order` came before it.
    point: usize,
    /// Where the last of them stands.
    after: Option<&'static Location<'static>>,
}

impl Step {
    /// Whether it changed the word after the one that another one changed, and no other one.
    pub fn goes_on_from(&self, other: &Step) -> bool {
        let words = (&*other.changes, &*self.changes);
        matches!(words, ([(from, _)], [(to, _)]) if from + 1 == *to)
    }

    /// What a word of the file became, if it is one of those.
    pub fn value_of(&self, word: usize) -> Option<u64> {
        let mut changed = self.changes.iter();
        changed.find(|(at, _)| *at == word).map(|(_, value)| *value)
    }

    /// Whether the compiler may put the two in either order, unless they change the same word.
    pub fn is_unordered_with(&self, other: &Step) -> bool {
        cfg!(debug_assertions) && self.point == other.point
    }

    /// Where the last call of `in_program_order` before it stands.
    pub fn after(&self) -> String {
        self.after
            .map_or("the beginning".to_owned(), |it| it.to_string())
    }

    /// The words that it changed.
    pub fn words(&self) -> impl Iterator<Item = usize> {
        self.changes.iter().map(|(word, _)| *word)
    }
}

/// Values that words of the file had.
pub struct Undo(Vec<(usize, u64)>);

/// A part of the address space with a part of the file.
#[derive(Clone, Copy, Debug)]
struct Mapping {
    first: usize,
    len: usize,
    /// Byte of the file.
    at: usize,
}

/// See the module's text.
pub struct Watch {
    mappings: Vec<Mapping>,
    file: File,
    /// Pages of the file that are not all zero, as far as is known.
    pages: BTreeSet<usize>,
    /// The file as it was after the last store that was redone.
    known: Vec<u64>,
    /// The file as it was after the last store that was watched.
    seen: Vec<u64>,
    changes: Vec<Change>,
    /// Of each step, how many calls of `in_program_order` came before.
    points: Vec<usize>,
    /// Where the store that is underway began.
    underway: usize,
    /// One thread at a time has the signals.
    _signals: MutexGuard<'static, ()>,
}

static SIGNALS: Mutex<()> = Mutex::new(());
static WATCH: AtomicPtr<Watch> = AtomicPtr::new(std::ptr::null_mut());

impl Watch {
    /// Of the mappings of a file.
    pub fn of(path: &Path) -> Box<Watch> {
        let signals = SIGNALS
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let lines = maps
            .lines()
            .filter(|line| line.ends_with(path.to_str().unwrap()));
        let mappings = lines.map(|line| {
            let mut fields = line.split_ascii_whitespace();
            let number = |text: &str| usize::from_str_radix(text, 16).unwrap();
            let (first, end) = fields.next().unwrap().split_once('-').unwrap();
            Mapping {
                first: number(first),
                len: number(end) - number(first),
                at: number(fields.nth(1).unwrap()),
            }
        });
        let mappings: Vec<Mapping> = mappings.collect();
        let words = mappings.iter().map(|it| it.at + it.len).max().unwrap() / 8;
        let mut watch = Box::new(Watch {
            mappings,
            file: File::open(path).unwrap(),
            pages: BTreeSet::new(),
            known: vec![0; words],
            seen: vec![0; words],
            changes: Vec::with_capacity(WORDS_MAX),
            points: Vec::with_capacity(WORDS_MAX),
            underway: 0,
            _signals: signals,
        });
        watch.follow();
        for (signal, handler) in [
            (libc::SIGSEGV, on_fault as *const () as usize),
            (libc::SIGTRAP, on_trap as *const () as usize),
        ] {
            // SAFETY: zero is a valid value of each field, and the handlers have the right shape.
            unsafe {
                let mut action: libc::sigaction = std::mem::zeroed();
                action.sa_sigaction = handler;
                action.sa_flags = libc::SA_SIGINFO | libc::SA_NODEFER;
                assert_eq!(
                    libc::sigaction(signal, &raw const action, std::ptr::null_mut()),
                    0
                );
            }
        }
        watch
    }

    fn protect(&self, rights: c_int) {
        for mapping in &self.mappings {
            // SAFETY: the mapping is of the file, and stays mapped.
            let done = unsafe { libc::mprotect(mapping.first as *mut c_void, mapping.len, rights) };
            assert_eq!(done, 0);
        }
    }

    /// Watches this thread from now on.
    pub fn begin(&mut self) {
        self.follow();
        self.changes.clear();
        self.points.clear();
        WATCH.store(self, SeqCst);
        #[cfg(debug_assertions)]
        order_points::begin();
        self.protect(libc::PROT_READ);
    }

    /// Watches no longer. Returns the stores.
    pub fn end(&mut self) -> Vec<Step> {
        self.protect(libc::PROT_READ | libc::PROT_WRITE);
        WATCH.store(std::ptr::null_mut(), SeqCst);
        #[cfg(debug_assertions)]
        let points = order_points::end();
        #[cfg(not(debug_assertions))]
        let points = Vec::new();
        let counted = counted(&points);
        let of_point = |&point: &usize| Step {
            changes: Vec::new(),
            point: counted[point],
            after: point.checked_sub(1).map(|nth| points[nth]),
        };
        let mut steps: Vec<Step> = self.points.iter().map(of_point).collect();
        for change in &self.changes {
            let step = &mut steps[change.step];
            step.changes.push((change.word, change.value));
        }
        steps.retain(|step| !step.changes.is_empty());
        steps
    }

    /// The file is as it is now.
    pub fn follow(&mut self) {
        // Others may have become holes.
        let now = data_pages(&self.file);
        for page in self.pages.union(&now) {
            let words = page * PAGE / 8..(page + 1) * PAGE / 8;
            let address = self.mappings.iter().find_map(|mapping| {
                let offset = (page * PAGE).checked_sub(mapping.at)?;
                (offset < mapping.len).then_some(mapping.first + offset)
            });
            let Some(address) = address else {
                continue;
            };
            for (known, word) in self.known[words.clone()]
                .iter_mut()
                .zip(words_of(address, PAGE / 8))
            {
                *known = word;
            }
            self.seen[words.clone()].copy_from_slice(&self.known[words]);
        }
        self.pages.extend(now);
    }

    /// The file is as it was after one more store.
    pub fn redo(&mut self, step: &Step) {
        for &(word, value) in &step.changes {
            self.known[word] = value;
            self.pages.insert(word / (PAGE / 8));
        }
    }

    /// Redoes some stores for a moment.
    pub fn redo_some<'a>(&mut self, steps: impl Iterator<Item = &'a Step>) -> Undo {
        let mut were = Vec::new();
        for step in steps {
            were.extend(step.words().map(|word| (word, self.known[word])));
            self.redo(step);
        }
        Undo(were)
    }

    /// The file is as it was before that.
    pub fn undo(&mut self, Undo(were): Undo) {
        for (word, value) in were.into_iter().rev() {
            self.known[word] = value;
        }
    }

    /// Pages of the file that are not all zero.
    pub fn pages(&self) -> &BTreeSet<usize> {
        &self.pages
    }

    /// The file's words.
    pub fn words(&self) -> &[u64] {
        &self.known
    }

    /// Notes what has changed near an address. Allocates nothing.
    fn note(&mut self, address: usize) {
        let of = self.mappings.iter().copied();
        let mut of = of.filter(|it| (it.first..it.first + it.len).contains(&address));
        let Some(mapping) = of.next() else {
            return;
        };
        let page = address / PAGE * PAGE;
        // A store may be as long as the widest register, and cross a page.
        let end = (page + 2 * PAGE).min(mapping.first + mapping.len);
        let from = (mapping.at + page - mapping.first) / 8;
        for (nth, value) in words_of(page, (end - page) / 8).enumerate() {
            let word = from + nth;
            if self.seen[word] != value && self.changes.len() < WORDS_MAX {
                self.seen[word] = value;
                let step = self.points.len();
                self.changes.push(Change { step, word, value });
            }
        }
        assert!(
            self.points.len() < WORDS_MAX,
            "a request makes fewer stores"
        );
        #[cfg(debug_assertions)]
        self.points.push(order_points::count());
        #[cfg(not(debug_assertions))]
        self.points.push(0);
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        for signal in [libc::SIGSEGV, libc::SIGTRAP] {
            // SAFETY: the default action.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
    }
}

/// How many calls of `in_program_order` count, after each of them. Those do not that stand in the
/// line of a file which `GLIMMER_WEAKEN` names, as `order:heap/write.rs:59`. A test that passes
/// then has not shown that the call is needed.
fn counted(points: &[&Location<'_>]) -> Vec<usize> {
    let weakened = std::env::var("GLIMMER_WEAKEN").unwrap_or_default();
    let left_out = weakened.strip_prefix("order:");
    let counts = |point: &Location<'_>| {
        let place = format!("{}:{}", point.file(), point.line());
        left_out.is_none_or(|left_out| !place.ends_with(left_out))
    };
    let mut counted = vec![0];
    for point in points {
        counted.push(counted[counted.len() - 1] + usize::from(counts(point)));
    }
    counted
}

/// Words at an address within a mapping.
fn words_of(address: usize, count: usize) -> impl Iterator<Item = u64> {
    let first = address as *const u64;
    // SAFETY: the words are mapped and aligned, and no other thread changes them.
    (0..count).map(move |nth| unsafe { first.add(nth).read_volatile() })
}

extern "C" fn on_fault(_: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let watch = WATCH.load(SeqCst);
    // SAFETY: the kernel passes both for the time of the call. The watch belongs to this thread,
    // which is in this handler.
    unsafe {
        let address = (*info).si_addr().addr();
        let is_ours = |watch: &Watch| {
            let mut all = watch.mappings.iter();
            all.any(|it| (it.first..it.first + it.len).contains(&address))
        };
        if watch.is_null() || !is_ours(&*watch) {
            // The instruction is executed again, and ends the process.
            libc::signal(libc::SIGSEGV, libc::SIG_DFL);
            return;
        }
        (*watch).underway = address;
        (*watch).protect(libc::PROT_READ | libc::PROT_WRITE);
        let context = context.cast::<libc::ucontext_t>();
        (*context).uc_mcontext.gregs[libc::REG_EFL as usize] |= TRAP;
    }
}

extern "C" fn on_trap(_: c_int, _: *mut libc::siginfo_t, context: *mut c_void) {
    let watch = WATCH.load(SeqCst);
    // SAFETY: as above.
    unsafe {
        let context = context.cast::<libc::ucontext_t>();
        (*context).uc_mcontext.gregs[libc::REG_EFL as usize] &= !TRAP;
        if !watch.is_null() {
            let address = (*watch).underway;
            (*watch).note(address);
            (*watch).protect(libc::PROT_READ);
        }
    }
}
