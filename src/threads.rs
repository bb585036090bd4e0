//! Threads that belong to one batch.

use std::hint;
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rayon_core::{ThreadPool, ThreadPoolBuilder};

/// The games that a thread must have to be worth waking.
const GAMES: usize = 16_384;

/// How long a thread stays awake after a step for the next one. To wake it takes as long
/// as it takes to step thousands of games.
const AWAKE: Duration = Duration::from_millis(1);

/// A number of threads, of which all but the calling one are started when they
/// are first used.
pub(crate) struct Threads {
    count: usize,
    /// With the process it was started in: a fork does not take threads along.
    pool: Option<(u32, ThreadPool)>,
    /// Rises with every piece of work.
    works: Arc<AtomicU64>,
}

impl Threads {
    /// `count` threads.
    pub(crate) fn new(count: usize) -> Threads {
        Threads { count: count.max(1), pool: None, works: Arc::default() }
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
    ///
    /// Each thread begins with a share of its own, the same one every time, so that
    /// what it works on stays in its cache; then it helps the others, of which one
    /// may have been slow to wake.
    pub(crate) fn map<T: Send, R: Send>(
        &mut self,
        tasks: impl Iterator<Item = T>,
        work: impl Fn(T) -> R + Sync,
    ) -> Vec<R> {
        self.works.fetch_add(1, Ordering::Relaxed);
        let mut tasks: Vec<T> = tasks.collect();
        let count = self.count.min(tasks.len());
        let pool = if count < 2 { None } else { self.pool() };
        let Some(pool) = pool else {
            return tasks.into_iter().map(work).collect();
        };
        let share = tasks.len().div_ceil(count);
        let shares: Vec<Mutex<Vec<T>>> = (0..count)
            .map(|i| Mutex::new(tasks.split_off(tasks.len().min((count - 1 - i) * share))))
            .collect();
        let results = Mutex::new(Vec::new());
        let take_from = |own: usize| {
            let mut mine = Vec::new();
            for i in 0..count {
                let share = &shares[(own + i) % count];
                // A panic elsewhere leaves no half-taken task behind.
                let next = || share.lock().unwrap_or_else(PoisonError::into_inner).pop();
                while let Some(task) = next() {
                    mine.push(work(task));
                }
            }
            results.lock().unwrap_or_else(PoisonError::into_inner).append(&mut mine);
        };
        pool.in_place_scope(|scope| {
            scope.spawn_broadcast(|_, thread| {
                if thread.index() + 1 < count {
                    take_from(thread.index() + 1);
                }
            });
            take_from(0);
        });
        results.into_inner().unwrap_or_else(PoisonError::into_inner)
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
            self.pool = pool.ok().map(|pool| (here, pool));
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
