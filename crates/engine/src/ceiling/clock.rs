//! How long another thread has computed. What else the machine does does not count, so that work from outside is not taken for hostile
//! where the machine is busy.

use std::thread::JoinHandle;
use std::time::Duration;

/// The clock of a thread that has not been waited for.
#[derive(Debug)]
pub struct ThreadClock {
    #[cfg(target_os = "linux")]
    id: libc::clockid_t,
}

impl ThreadClock {
    /// `None` where the system has none. A thread that has ended may have that of the caller: it is read only while the thread works.
    #[cfg(target_os = "linux")]
    #[expect(unsafe_code, reason = "the standard library has no word for it")]
    pub fn of<T>(thread: &JoinHandle<T>) -> Option<ThreadClock> {
        use std::os::unix::thread::JoinHandleExt;
        let mut id = 0;
        // SAFETY: the thread is neither joined nor detached while its handle is here, and `id` is written to alone.
        let result = unsafe { libc::pthread_getcpuclockid(thread.as_pthread_t(), &raw mut id) };
        (result == 0).then_some(ThreadClock { id })
    }

    #[cfg(not(target_os = "linux"))]
    pub fn of<T>(_: &JoinHandle<T>) -> Option<ThreadClock> {
        None
    }

    /// `None` once the thread is gone.
    #[cfg(target_os = "linux")]
    #[expect(unsafe_code, reason = "the standard library has no word for it")]
    pub fn read(&self) -> Option<Duration> {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `time` is written to alone; a clock that is no longer there is an error.
        let result = unsafe { libc::clock_gettime(self.id, &raw mut time) };
        let nanoseconds = u32::try_from(time.tv_nsec).ok()?;
        (result == 0).then_some(Duration::new(u64::try_from(time.tv_sec).ok()?, nanoseconds))
    }

    #[cfg(not(target_os = "linux"))]
    pub fn read(&self) -> Option<Duration> {
        None
    }
}
