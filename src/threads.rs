//! Threads that belong to one batch.

use std::hint;
use std::process;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use rayon_core::{ThreadPool, ThreadPoolBuilder};

/// The games that a thread must have to be worth waking.
const GAMES: usize = 4_096;

/// How long a thread stays awake after a step for the next one. To wake it takes as long
/// as it takes to step thousands of games.
const AWAKE: Duration = Duration::from_millis(1);

/// How long a thread waits for the others before it goes to sleep.
const SPIN: Duration = Duration::from_micros(25);

/// If the calling thread has to wait for the others for longer than this, and for longer
/// than this many of its own tasks took on average, they count as held up: other programs
/// have their cores.
const HELD_UP: Duration = Duration::from_micros(100);
const HELD_UP_TASKS: u32 = 4;

/// Held up twice in a row, the calling thread works alone for this many times as long as it
/// has waited, so that trying again takes little of its time. It does so at once if the
/// others are held up again then.
const ALONE: u32 = 20;

/// No longer wait than this counts: it may have come from one long task.
const LONGEST_WAIT: Duration = Duration::from_millis(10);

/// The tasks of some threads. Each begins with a share of its own, the same one every
/// time, so that what it works on stays in its cache; then it helps the others, of
/// which one may have been slow to wake.
struct Shares<T>(Vec<Mutex<Vec<T>>>);

impl<T> Shares<T> {
    /// Shares of the tasks for `count` threads, or as many as there are tasks.
    fn of(mut tasks: Vec<T>, count: usize) -> Shares<T> {
        let count = count.min(tasks.len());
        let all = tasks.len();
        let share_of = |i| tasks.split_off(all * (count - 1 - i) / count).into();
        Shares((0..count).map(share_of).collect())
    }

    fn empty(count: usize) -> Shares<T> {
        Shares((0..count).map(|_| Mutex::default()).collect())
    }

    fn count(&self) -> usize {
        self.0.len()
    }

    fn put(&self, share: usize, task: T) {
        lock(&self.0[share]).push(task);
    }

    /// Takes tasks, each with the number of its share, until there are no more.
    fn take(&self, own: usize, mut work: impl FnMut(usize, T)) {
        for i in 0..self.count() {
            let share = (own + i) % self.count();
            let next = || lock(&self.0[share]).pop();
            while let Some(task) = next() {
                work(share, task);
            }
        }
    }
}

/// Locks what stays whole when a thread panics.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A number of pieces of work that threads wait for.
struct Left {
    count: AtomicUsize,
    sleepers: Mutex<Vec<Thread>>,
}

/// One of [`Left`], done when it is dropped: also by a panic, lest others wait for ever.
struct One<'a>(&'a Left);

impl Left {
    fn new(count: usize) -> Left {
        Left { count: AtomicUsize::new(count), sleepers: Mutex::default() }
    }

    fn is_none(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }

    /// Waits for a moment without going to sleep; whether all is done then.
    fn spin(&self) -> bool {
        let start = Instant::now();
        while !self.is_none() && start.elapsed() < SPIN {
            hint::spin_loop();
        }
        self.is_none()
    }

    /// Waits until all is done, and tells how long that was.
    fn wait(&self) -> Duration {
        let start = Instant::now();
        if !self.spin() {
            // The core may be what the others wait for.
            lock(&self.sleepers).push(thread::current());
            while !self.is_none() {
                thread::park();
            }
        }
        start.elapsed()
    }
}

impl Drop for One<'_> {
    fn drop(&mut self) {
        if self.0.count.fetch_sub(1, Ordering::AcqRel) == 1 {
            lock(&self.0.sleepers).drain(..).for_each(|sleeper| sleeper.unpark());
        }
    }
}

/// A number of threads, of which all but the calling one are started when they
/// are first used.
pub(crate) struct Threads {
    count: usize,
    /// With the process it was started in: a fork does not take threads along.
    pool: Option<(u32, ThreadPool)>,
    /// Rises with every piece of work.
    works: Arc<AtomicU64>,
    /// Whether the other threads were held up the last time.
    held_up: bool,
    /// Until when the calling thread works alone.
    alone: Option<Instant>,
}

/// What a thread has done of a piece of work.
#[derive(Default)]
struct Done {
    tasks: u32,
    /// How long it has waited for the others in between.
    waited: Duration,
}

impl Threads {
    /// `count` threads.
    pub(crate) fn new(count: usize) -> Threads {
        Threads {
            count: count.max(1),
            pool: None,
            works: Arc::default(),
            held_up: false,
            alone: None,
        }
    }

    /// As many threads as pay off for `n` games on this machine.
    pub(crate) fn for_games(n: usize) -> Threads {
        let available = thread::available_parallelism().map_or(1, usize::from);
        Threads::new(available.min(n / GAMES))
    }

    /// How many threads there are, with the calling one.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Keeps the other threads awake for a moment, in case more work is to come.
    pub(crate) fn stay_awake(&mut self) {
        let works = Arc::clone(&self.works);
        let so_far = works.load(Ordering::Relaxed);
        if self.count > 1
            && self.alone.is_none()
            && let Some(pool) = self.pool()
        {
            pool.spawn_broadcast(move |_| {
                let start = Instant::now();
                while works.load(Ordering::Relaxed) == so_far && start.elapsed() < AWAKE {
                    hint::spin_loop();
                }
            });
        }
    }

    /// What `work` makes of every task, in no certain order.
    pub(crate) fn map<T: Send, R: Send>(
        &mut self,
        tasks: impl Iterator<Item = T>,
        work: impl Fn(T) -> R + Sync,
    ) -> Vec<R> {
        self.check_and_map(tasks, |_| None::<()>, work).unwrap_or_default()
    }

    /// As [`Threads::map`], once `check` has found nothing in any task; else the least
    /// that it has found, and no task is worked on.
    pub(crate) fn check_and_map<T: Send, R: Send, E: Copy + Ord + Send>(
        &mut self,
        tasks: impl Iterator<Item = T>,
        check: impl Fn(&mut T) -> Option<E> + Sync,
        work: impl Fn(T) -> R + Sync,
    ) -> Result<Vec<R>, E> {
        let mut tasks: Vec<T> = tasks.collect();
        if self.hands(tasks.len()) < 2 {
            return match tasks.iter_mut().filter_map(check).min() {
                Some(found) => Err(found),
                None => Ok(tasks.into_iter().map(work).collect()),
            };
        }
        let count = tasks.len();
        let shares = Shares::of(tasks, self.count);
        let checked = Shares::empty(shares.count());
        let (left, put) = (Left::new(count), AtomicUsize::new(0));
        let (found, results) = (Mutex::new(None), Mutex::new(Vec::new()));
        self.everywhere(shares.count(), |own| {
            shares.take(own, |share, mut task| {
                let _one = One(&left);
                if let Some(new) = check(&mut task) {
                    let mut found = lock(&found);
                    *found = Some(found.map_or(new, |old: E| old.min(new)));
                }
                checked.put(share, task);
                put.fetch_add(1, Ordering::Release);
            });
            let waited = left.wait();
            let mut mine = Vec::new();
            // Not all tasks are here if a check has panicked.
            if lock(&found).is_none() && put.load(Ordering::Acquire) == count {
                checked.take(own, |_, task| mine.push(work(task)));
            }
            let tasks = mine.len() as u32;
            lock(&results).append(&mut mine);
            Done { tasks, waited }
        });
        match found.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some(found) => Err(found),
            None => Ok(results.into_inner().unwrap_or_else(PoisonError::into_inner)),
        }
    }

    /// How many threads are to take part in a number of tasks.
    fn hands(&mut self, tasks: usize) -> usize {
        let hands = self.count.min(tasks);
        if hands > 1 {
            self.alone = self.alone.filter(|&until| Instant::now() < until);
        }
        if self.alone.is_some() { 1 } else { hands }
    }

    /// Lets `count` threads do `work`, each with its own number.
    fn everywhere(&mut self, count: usize, work: impl Fn(usize) -> Done + Sync) {
        let works = Arc::clone(&self.works);
        let Some(pool) = self.pool() else {
            work(0);
            return;
        };
        let start = Instant::now();
        let (mut own, mut worked) = (Done::default(), Duration::ZERO);
        let left = Left::new(pool.current_num_threads());
        pool.in_place_scope(|scope| {
            scope.spawn_broadcast(|_, thread| {
                let _one = One(&left);
                if thread.index() + 1 < count {
                    work(thread.index() + 1);
                }
            });
            // Now those that stay awake find it.
            works.fetch_add(1, Ordering::Release);
            own = work(0);
            worked = start.elapsed() - own.waited;
            // The scope puts this thread to sleep if it has to wait, which takes longer than
            // the rest of the others' work as a rule.
            left.spin();
        });
        let waited = start.elapsed() - worked;
        let held_up = waited > HELD_UP.max(HELD_UP_TASKS * worked / own.tasks.max(1));
        if held_up && self.held_up {
            self.alone = Some(Instant::now() + ALONE * waited.min(LONGEST_WAIT));
        }
        self.held_up = held_up;
    }

    /// The threads beside the calling one; `None` if the system gives us none,
    /// in which case the calling one does the work.
    fn pool(&mut self) -> Option<&ThreadPool> {
        let here = process::id();
        if self.pool.as_ref().is_some_and(|(process, _)| *process != here) {
            // Its threads did not live through the fork: nothing may wait for them.
            std::mem::forget(self.pool.take());
        }
        if self.pool.is_none() {
            let pool = ThreadPoolBuilder::new()
                .num_threads(self.count - 1)
                .thread_name(|i| format!("katro-{i}"))
                .build();
            match pool {
                Ok(pool) => self.pool = Some((here, pool)),
                // It would fail again in every step.
                Err(_) => self.count = 1,
            }
        }
        self.pool.as_ref().map(|(_, pool)| pool)
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        if self.pool.as_ref().is_some_and(|(process, _)| *process != process::id()) {
            std::mem::forget(self.pool.take());
        }
    }
}

impl Clone for Threads {
    /// The same number of threads, not the same threads.
    fn clone(&self) -> Threads {
        Threads::new(self.count)
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    fn numbers() -> std::ops::Range<usize> {
        0..50
    }

    /// The threads that took part in a piece of work of some milliseconds: few, lest a busy
    /// machine makes them more than the caller is to work alone.
    fn took_part(threads: &mut Threads, hold_up: bool) -> usize {
        let caller = thread::current().id();
        let ids = threads.map(0..10, |_| {
            let id = thread::current().id();
            thread::sleep(Duration::from_millis(if hold_up && id != caller { 20 } else { 1 }));
            id
        });
        assert_eq!(ids.len(), 10);
        if ids.iter().all(|&id| id == caller) { 1 } else { 2 }
    }

    #[test]
    fn the_least_that_was_found_is_told_and_nothing_done() {
        for count in [1, 2, 8] {
            let mut threads = Threads::new(count);
            let done = AtomicUsize::new(0);
            let check =
                |number: &mut usize| (*number > 20 && number.is_multiple_of(3)).then_some(*number);
            let work = |_| done.fetch_add(1, Ordering::Relaxed);
            assert_eq!(threads.check_and_map(numbers(), check, work), Err(21));
            assert_eq!(done.load(Ordering::Relaxed), 0);
            let mut all =
                threads.check_and_map(numbers(), |_| None::<()>, |number| number).unwrap();
            all.sort_unstable();
            assert_eq!(all, numbers().collect::<Vec<_>>());
        }
    }

    #[test]
    fn nothing_is_done_after_a_check_that_panics_and_nobody_waits_for_ever() {
        for count in [1, 2, 8] {
            let mut threads = Threads::new(count);
            for bad in [0, 30, 49] {
                let done = AtomicUsize::new(0);
                let check = |number: &mut usize| -> Option<()> {
                    assert!(*number != bad);
                    None
                };
                let work = |_| done.fetch_add(1, Ordering::Relaxed);
                let result = catch_unwind(AssertUnwindSafe(|| {
                    threads.check_and_map(numbers(), check, work).is_ok()
                }));
                assert!(result.is_err());
                assert_eq!(done.load(Ordering::Relaxed), 0);
            }
            assert_eq!(threads.map(numbers(), |number| number).len(), numbers().len());
        }
    }

    #[test]
    fn where_others_are_held_up_the_caller_works_alone_for_a_while() {
        let mut threads = Threads::new(2);
        while threads.alone.is_none() {
            took_part(&mut threads, true);
        }
        let until = threads.alone.expect("one of the tasks took 20 ms");
        assert_eq!(took_part(&mut threads, true), 1);
        assert!(Instant::now() < until);
        thread::sleep(until - Instant::now());
        // Sooner or later they are not held up any more.
        assert!((0..20).any(|_| {
            threads.alone = None;
            took_part(&mut threads, false) == 2 && threads.alone.is_none()
        }));
    }
}
