//! The one writer of a run directory: a thread that owns the logs, and the handle that reaches it.
//!
//! A call returns when its line is durable. The thread takes everything that is queued, writes it, syncs each file once,
//! then answers every caller: under load, a sync serves many lines.

use std::iter;
use std::thread;

use crossbeam_channel::{Receiver, Sender, bounded, unbounded};

use super::directory::Directory;
use super::error::RunError;
use super::link::Link;
use crate::record::{CallLine, ItemLine, SearchLine};

type Waiter = Sender<Result<(), RunError>>;

/// What is written to the directory.
type Written = Box<dyn FnOnce(&mut Directory) -> Result<(), RunError> + Send>;

enum Message {
    Line(Written, Waiter),
    Finish(Waiter),
}

/// A handle to the log; clone it for each thread that writes.
#[derive(Clone, Debug)]
pub struct Log {
    writer: Sender<Message>,
}

impl Log {
    /// Starts the writing thread. It ends with `finish`, or when the last handle is dropped.
    pub fn start(directory: Directory) -> Result<Log, RunError> {
        let (writer, inbox) = unbounded();
        thread::Builder::new()
            .name("run-log".to_owned())
            .spawn(move || write(directory, &inbox))?;
        Ok(Log { writer })
    }

    /// Appends a call and waits until it is durable; its `seq`, `prev` and `hash` are overwritten.
    ///
    /// A key that is logged already is refused. After a failed write every call errors, and the files end with the
    /// last durable line.
    pub fn call(&self, record: CallLine) -> Result<(), RunError> {
        self.line(|directory| directory.calls.push(record))
    }

    /// Appends a search as `call` does a call; only the run of a plan with corpora has where to.
    pub fn search(&self, record: SearchLine) -> Result<(), RunError> {
        self.line(|directory| match &mut directory.searches {
            Some(searches) => searches.push(record),
            None => Err(RunError::Unlogged(format!("{}: the plan names no corpus", record.key()))),
        })
    }

    /// Appends an item as `call` does a call. Only an item whose earlier line has an error may be logged again: its
    /// later line counts.
    pub fn item(&self, record: impl Into<ItemLine>) -> Result<(), RunError> {
        let record = record.into();
        self.line(|directory| directory.items.push(record))
    }

    /// Ends the log and closes its files; later calls on other handles err.
    ///
    /// Errors when a write failed.
    pub fn finish(self) -> Result<(), RunError> {
        self.ask(Message::Finish)
    }

    fn line(
        &self,
        push: impl FnOnce(&mut Directory) -> Result<(), RunError> + Send + 'static,
    ) -> Result<(), RunError> {
        self.ask(|reply| Message::Line(Box::new(push), reply))
    }

    fn ask(&self, message: impl FnOnce(Waiter) -> Message) -> Result<(), RunError> {
        let (reply, answer) = bounded(1);
        let closed = || RunError::Unlogged("the log of this run is closed".to_owned());
        self.writer.send(message(reply)).map_err(|_| closed())?;
        answer.recv().map_err(|_| closed())?
    }
}

fn write(mut directory: Directory, inbox: &Receiver<Message>) {
    // The first failed write: nothing is written after it, and every caller gets its error.
    let mut standing: Result<(), RunError> = Ok(());
    while let Ok(first) = inbox.recv() {
        let (mut waiting, mut finish) = (Vec::new(), None);
        for message in iter::once(first).chain(inbox.try_iter()) {
            let (push, reply) = match message {
                Message::Line(push, reply) => (push, reply),
                Message::Finish(reply) => {
                    finish = Some(reply);
                    break;
                }
            };
            match push(&mut directory) {
                Ok(()) => waiting.push(reply),
                Err(error) => answer(&reply, Err(error)),
            }
        }
        // In the order in which lines refer to one another.
        if let Some(log) = &mut directory.searches {
            standing = standing.and_then(|()| log.commit());
        }
        standing = standing.and_then(|()| directory.calls.commit());
        standing = standing.and_then(|()| directory.items.commit());
        waiting.iter().for_each(|reply| answer(reply, standing.clone()));
        if let Some(reply) = finish {
            // Closed before the answer: the caller may open the directory again.
            drop(directory);
            return answer(&reply, standing);
        }
    }
}

/// A caller that is gone needs no answer.
fn answer(reply: &Waiter, result: Result<(), RunError>) {
    let _ = reply.send(result);
}

#[cfg(test)]
mod tests {
    use crate::diagnosis::Diagnosis;
    use std::collections::HashSet;
    use std::env;
    use std::path::Path;
    use std::process::Command;

    use super::*;
    use crate::experiment::appender::Appender;
    use crate::experiment::chain::Chain;
    use crate::experiment::contents::Contents;
    use crate::experiment::fixtures::{
        ITEMS, call, failed_item, item, kill_writer, plan, start as start_run, texts,
    };
    use crate::experiment::line::Hasher;
    use crate::record::CallKey;

    fn start(path: &Path) -> Log {
        start_run(path, &plan())
    }

    #[test]
    fn many_threads_write_one_chain() {
        let out = tempfile::tempdir().unwrap();
        let log = start(out.path());
        thread::scope(|scope| {
            for thread in 0..8 {
                let log = log.clone();
                scope.spawn(move || {
                    for number in 0..50 {
                        log.call(call(&format!("q{number}"), thread, "sym")).unwrap();
                        if number % 10 == 0 {
                            log.item(item(&format!("q{number}"), thread)).unwrap();
                        }
                    }
                });
            }
        });
        log.finish().unwrap();
        let contents = Contents::read(out.path()).unwrap();
        let heads = contents.heads();
        assert_eq!((heads.call_lines, heads.item_lines), (400, 40));
        let keys: HashSet<CallKey> = contents.calls.records.iter().map(Link::key).collect();
        assert_eq!(keys.len(), 400);
    }

    #[test]
    fn a_line_is_in_the_file_when_the_call_returns() {
        let out = tempfile::tempdir().unwrap();
        let log = start(out.path());
        for lines in 1..4 {
            log.call(call("q1", lines, "sym")).unwrap();
            let text = fs_err::read_to_string(out.path().join("calls.jsonl")).unwrap();
            assert_eq!(text.matches('\n').count(), lines as usize);
        }
    }

    #[test]
    fn a_key_is_refused_twice_and_the_log_goes_on() {
        let out = tempfile::tempdir().unwrap();
        let log = start(out.path());
        log.call(call("q1", 0, "sym")).unwrap();
        let error = log.call(call("q1", 0, "sym")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "call initial of sym, round 0, sample 0, item q1 of medqa, run 0 is logged already"
        );
        let mut broken = call("q1", 0, "ddx");
        broken.sampling.temperature = Some(f32::NAN);
        let error = log.call(broken).unwrap_err();
        assert!(error.to_string().contains("would not read back"), "{error}");
        log.call(call("q1", 0, "ddx")).unwrap();
        log.item(failed_item("q1", 0)).unwrap();
        log.item(item("q1", 0)).unwrap();
        let error = log.item(item("q1", 0)).unwrap_err();
        assert!(error.to_string().ends_with("is logged already"), "{error}");
        log.finish().unwrap();
        let heads = Contents::read(out.path()).unwrap().heads();
        assert_eq!((heads.call_lines, heads.item_lines), (2, 2));
    }

    #[test]
    fn a_finished_log_is_closed_to_other_handles() {
        let out = tempfile::tempdir().unwrap();
        let log = start(out.path());
        let other = log.clone();
        log.finish().unwrap();
        let error = other.call(call("q1", 0, "sym")).unwrap_err();
        assert_eq!(error.to_string(), "the log of this run is closed");
    }

    // Where /dev/full is.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_told_to_every_caller() {
        let out = tempfile::tempdir().unwrap();
        let mut directory = Directory::create(out.path(), &plan(), &texts(&ITEMS)).unwrap();
        let full = fs_err::OpenOptions::new().append(true).open("/dev/full").unwrap();
        let empty = Chain::empty("");
        directory.calls = Appender::behind(full, &empty, Hasher::default()).unwrap();
        let log = Log::start(directory).unwrap();
        thread::scope(|scope| {
            for thread in 0..4 {
                let log = log.clone();
                scope.spawn(move || {
                    let error = log.call(call("q1", thread, "sym")).unwrap_err();
                    assert!(error.to_string().contains("/dev/full"), "{error}");
                    assert!(error.to_string().contains("No space left"), "{error}");
                    assert!(error.hint().unwrap().contains("wardround resume"));
                });
            }
        });
        let error = log.item(item("q1", 0)).unwrap_err();
        assert!(error.to_string().contains("No space left"), "{error}");
        assert!(log.finish().is_err());
        assert_eq!(fs_err::read(out.path().join("items.jsonl")).unwrap(), b"");
    }

    /// Runs itself again under a file-size limit, where a write stops in the middle of a line as on a full disk.
    #[test]
    fn a_write_that_stops_halfway_leaves_whole_lines() {
        const OUT: &str = "WARDROUND_TEST_LIMITED_OUT";
        if let Some(out) = env::var_os(OUT) {
            return write_until_it_stops(Path::new(&out));
        }
        let out = tempfile::tempdir().unwrap();
        let run = Command::new("sh")
            .args(["-c", "trap '' XFSZ; ulimit -f 40; exec \"$@\"", "sh"])
            .arg(env::current_exe().unwrap())
            .args(["--exact", "--nocapture", "--test-threads=1"])
            .arg("experiment::log::tests::a_write_that_stops_halfway_leaves_whole_lines")
            .env(OUT, out.path())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&run.stdout);
        assert!(run.status.success(), "{said}");
        let acknowledged = said.split("acknowledged ").nth(1).unwrap();
        let acknowledged: usize = acknowledged.lines().next().unwrap().parse().unwrap();
        assert!(acknowledged > 0);

        let directory = Directory::begin(out.path(), &plan(), &texts(&ITEMS)).unwrap();
        let finished = &directory.finished;
        assert_eq!(finished.calls.len(), acknowledged);
        let log = Log::start(directory).unwrap();
        log.call(call("one more", 0, "sym")).unwrap();
        log.finish().unwrap();
        let heads = Contents::read(out.path()).unwrap().heads();
        assert_eq!(heads.call_lines as usize, acknowledged + 1);
    }

    fn write_until_it_stops(out: &Path) {
        let log = start(out);
        let write = |thread: u32| {
            let log = log.clone();
            move || {
                let numbers = 0..1000;
                let record = |number| call(&format!("q{number}"), thread, "sym");
                let written = numbers.map(|number| log.call(record(number)));
                written.take_while(Result::is_ok).count()
            }
        };
        let acknowledged: usize = thread::scope(|scope| {
            let writers: Vec<_> = (0..4).map(|thread| scope.spawn(write(thread))).collect();
            writers.into_iter().map(|writer| writer.join().unwrap()).sum()
        });
        let error = log.finish().unwrap_err();
        assert!(error.to_string().contains("File too large"), "{error}");
        let text = fs_err::read(out.join("calls.jsonl")).unwrap();
        assert!(text.ends_with(b"\"}\n"));
        println!("\nacknowledged {acknowledged}");
    }

    const KILLED: &str = "WARDROUND_TEST_KILLED_OUT";

    /// The child's part: without the variable it does nothing, whoever runs it.
    #[test]
    fn child() {
        let Some(out) = env::var_os(KILLED) else { return };
        let directory = Directory::begin(Path::new(&out), &plan(), &texts(&ITEMS)).unwrap();
        let log = Log::start(directory).unwrap();
        thread::scope(|scope| {
            for thread in 0..4 {
                let log = &log;
                scope.spawn(move || {
                    for number in 0.. {
                        let item = format!("q{}-{number}", std::process::id());
                        log.call(call(&item, thread, "sym")).unwrap();
                        println!("acknowledged {thread} {item}.");
                    }
                });
            }
        });
    }

    /// Kills a process that writes, so many times, and looks for each call that it was told of.
    fn kill(times: u64) {
        let out = tempfile::tempdir().unwrap();
        let mut acknowledged = 0;
        for round in 0..times {
            let told = kill_writer("experiment::log::tests::child", KILLED, out.path(), round);
            if told.is_empty() {
                continue;
            }
            let contents = Contents::read(out.path()).unwrap();
            let records = contents.calls.records.iter();
            let there: HashSet<String> =
                records.map(|call| format!("{} {}", call.run, call.item)).collect();
            for name in &told {
                assert!(there.contains(name), "{name}");
            }
            acknowledged += told.len();
        }
        assert!(acknowledged > 0);
    }

    #[test]
    fn nothing_that_was_acknowledged_is_lost_whenever_the_process_is_killed() {
        kill(5);
    }

    #[test]
    #[ignore = "takes a while"]
    fn nothing_is_lost_in_forty_kills() {
        kill(40);
    }
}
