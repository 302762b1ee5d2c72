//! `bench serve`: load-tests a server of its own or any other, and compares it with the same engine in process.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use clap::{Args, Parser};

use crate::bench::load::http::Target;
use crate::bench::load::{
    Arrival, End, Finished, LoadFigures, Outcome, Percentiles, PromptShape, put,
};
use crate::bench::output::OutputFormat;
use crate::bench::serve::{
    Memory, ServeMeasurement, ServeReport, ask_in_process, equal_answers, observe, resident_mib,
};
use crate::cli::exit::Failure;
use crate::cli::options::QuietFlag;
use crate::cli::serve::Serve;
use crate::console;
use crate::experiment::{clock, run};
use crate::panel::sampling;

/// The requests of a load per client, if neither --requests nor --seconds is given.
const REQUESTS_PER_CLIENT: usize = 8;
/// The pause after a load before memory is measured again, so that everything it used is freed.
const SETTLE: Duration = Duration::from_secs(1);

#[derive(Debug, Args)]
pub struct ServeBench {
    /// Closed loop: N concurrent clients, each sending its next request once the last is answered
    #[arg(long, value_delimiter = ',', default_value = "1,8,64", value_name = "N,N", value_parser = clap::value_parser!(u16).range(1..))]
    concurrency: Vec<u16>,
    /// Open loop instead: Poisson arrivals at this mean rate in requests per second
    #[arg(long, value_delimiter = ',', value_name = "R,R", value_parser = rate, conflicts_with = "concurrency")]
    rate: Vec<f64>,
    /// Requests per load [default: 8 per client, 64 for a rate]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    requests: Option<u32>,
    /// Duration of each load in seconds, instead of a number of requests
    #[arg(long, value_name = "S", conflicts_with = "requests", value_parser = clap::value_parser!(u32).range(1..))]
    seconds: Option<u32>,
    /// Prompt length in words, of one or two tokens each
    #[arg(long, default_value_t = 128, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    prompt_words: u32,
    /// Fraction of the prompt that is a prefix shared by all requests
    #[arg(long, default_value_t = 0.5, value_name = "F", value_parser = sampling::share::<f64>)]
    shared_prefix: f64,
    /// Tokens per completion
    #[arg(long, default_value_t = 32, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_tokens: u32,
    /// Random seed of the prompts and the arrivals
    #[arg(long, default_value_t = 42, value_name = "S")]
    seed: u64,
    /// Measure the server at this URL, which ends with /v1, instead of starting one
    #[arg(long, value_name = "URL", requires = "model", conflicts_with = "serve")]
    url: Option<String>,
    /// Name of the model at --url
    #[arg(long, value_name = "NAME", requires = "url")]
    model: Option<String>,
    /// Skip the measurement of the engine in process
    #[arg(long)]
    http_only: bool,
    /// Output format
    #[arg(long, value_enum, default_value = "md")]
    format: OutputFormat,
    #[command(flatten)]
    progress: QuietFlag,
    /// Model and flags, as `wardround serve` takes them
    #[arg(last = true, required_unless_present = "url", value_name = "MODEL AND FLAGS OF SERVE")]
    serve: Vec<String>,
}

/// The arguments of `serve` by themselves.
#[derive(Parser)]
#[command(name = "wardround serve", no_binary_name = true)]
struct ServeLine {
    #[command(flatten)]
    serve: Serve,
}

impl ServeBench {
    pub fn run(self) -> Result<(), Failure> {
        let is_own = self.url.is_none();
        let in_process = is_own.then(|| self.measure_in_process()).transpose()?;
        let server = is_own.then(|| Server::start(&self.arguments(), self.progress.quiet));
        let server = server.transpose()?;
        let base = server.as_ref().map_or(self.url.as_deref(), |server| Some(&server.base));
        let model = in_process.as_ref().map_or(self.model.as_deref(), |all| Some(&all.model));
        let (base, model) = (base.unwrap_or_default(), model.unwrap_or_default());
        let target = Target::new(base, model, self.most_clients());
        let shape = self.shape();
        // The first request is a warm-up.
        if let Outcome::Failed(reason) = target.ask(&shape, usize::MAX).outcome {
            return Err(Failure::machine(
                format!("{base} does not answer: {reason}"),
                "check --url and --model, and that the server is ready",
            ));
        }
        let pid = server.as_ref().map(|server| server.child.id());
        let mut results = Vec::new();
        for (index, arrival) in self.arrivals().into_iter().enumerate() {
            let beside = in_process.as_ref().and_then(|all| all.finished.get(index));
            results.push(self.measure(arrival, &target, pid, beside));
        }
        drop(server);
        let report = ServeReport {
            results,
            server: match &self.url {
                Some(url) => url.clone(),
                None => format!("wardround serve {}", self.serve.join(" ")),
            },
            model: model.to_owned(),
            prompts: shape,
            created_at: clock::utc_now(),
            hardware: run::host(),
            version: env!("CARGO_PKG_VERSION"),
            profile: if cfg!(debug_assertions) { "dev" } else { "release" },
        };
        let text = self.format.write(&report, "results", || report.markdown())?;
        Ok(console::say(text.trim_end())?)
    }

    fn measure(
        &self,
        arrival: Arrival,
        target: &Target,
        pid: Option<u32>,
        beside: Option<&Finished>,
    ) -> ServeMeasurement {
        self.progress.note(format!("over HTTP: {arrival}"));
        let shape = self.shape();
        let before = pid.and_then(resident_mib);
        let is_over = AtomicBool::new(false);
        let (finished, observed) = thread::scope(|scope| {
            let watching = scope
                .spawn(|| observe(pid, || target.health(), || is_over.load(Ordering::Relaxed)));
            let ask = |index| target.ask(&shape, index);
            let finished = put(arrival, self.end(arrival), self.seed, &ask);
            is_over.store(true, Ordering::Relaxed);
            (finished, watching.join())
        });
        let observed = observed.ok();
        thread::sleep(SETTLE);
        let after = pid.and_then(resident_mib);
        let memory = observed.as_ref().zip(before.zip(after));
        ServeMeasurement {
            arrival,
            http: LoadFigures::new(&finished),
            health_ms: Percentiles::of(
                &observed.as_ref().map_or_else(Default::default, |seen| seen.health.clone()),
            ),
            memory: memory
                .map(|(observed, (before, after))| Memory::new(before, &observed.memory, after)),
            in_process: beside.map(LoadFigures::new),
            equal_answers: beside.map(|beside| equal_answers(&finished, beside)),
        }
    }

    /// Measures the loads on an engine in this process, which is dropped before the server starts.
    fn measure_in_process(&self) -> Result<InProcess, Failure> {
        let line = ServeLine::try_parse_from(self.arguments()).map_err(|error| {
            let text = error.to_string();
            let first = text.lines().next().unwrap_or_default();
            let message = first.trim_start_matches("error: ").to_owned();
            Failure::usage(message, "after -- give a model and the flags of `wardround serve`")
        })?;
        let sources = line.serve.sources()?;
        let Some(model) = sources.named.first().map(|model| model.name.clone()) else {
            return Err(Failure::usage("there is no model to serve", "name one after --"));
        };
        let mut finished = Vec::new();
        if !self.http_only && self.rate.is_empty() {
            let shape = self.shape();
            for loaded in sources.load()?.models.into_iter().take(1) {
                ask_in_process(&loaded.backbone, &shape, usize::MAX);
                for arrival in self.arrivals() {
                    self.progress.note(format!("in process: {arrival}"));
                    let ask = |index| ask_in_process(&loaded.backbone, &shape, index);
                    finished.push(put(arrival, self.end(arrival), self.seed, &ask));
                }
            }
        }
        Ok(InProcess { model, finished })
    }

    /// The arguments of the server, with any free port.
    fn arguments(&self) -> Vec<String> {
        let port = ["--port".to_owned(), "0".to_owned()];
        self.serve.iter().cloned().chain(port).collect()
    }

    fn shape(&self) -> PromptShape {
        PromptShape {
            words: self.prompt_words as usize,
            shared: self.shared_prefix,
            max_tokens: self.max_tokens as usize,
            seed: self.seed,
        }
    }

    fn arrivals(&self) -> Vec<Arrival> {
        if self.rate.is_empty() {
            let clients = self.concurrency.iter().map(|&clients| usize::from(clients));
            return clients.map(|clients| Arrival::Closed { clients }).collect();
        }
        self.rate.iter().map(|&per_second| Arrival::Open { per_second }).collect()
    }

    fn end(&self, arrival: Arrival) -> End {
        match (self.seconds, self.requests, arrival) {
            (Some(seconds), _, _) => End::After(Duration::from_secs(u64::from(seconds))),
            (None, Some(requests), _) => End::Requests(requests as usize),
            (None, None, Arrival::Closed { clients }) => {
                End::Requests(REQUESTS_PER_CLIENT * clients)
            }
            (None, None, Arrival::Open { .. }) => End::Requests(64),
        }
    }

    fn most_clients(&self) -> usize {
        // An open loop needs as many connections as responses overlap.
        self.concurrency.iter().copied().max().map_or(64, usize::from).max(64)
    }
}

/// The results of the engine in this process, by load.
struct InProcess {
    model: String,
    finished: Vec<Finished>,
}

/// A server in a process of its own, which is killed on drop.
struct Server {
    child: Child,
    base: String,
}

impl Server {
    fn start(arguments: &[String], quiet: bool) -> Result<Server, Failure> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["serve", "--end-with-parent"])
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(if quiet { Stdio::null() } else { Stdio::inherit() })
            .spawn()?;
        let mut line = String::new();
        if let Some(output) = child.stdout.take() {
            BufReader::new(output).read_line(&mut line)?;
        }
        let address = line.trim_end().strip_prefix("listening on ").map(str::to_owned);
        let mut server = Server { child, base: String::new() };
        let Some(address) = address.filter(|address| address.starts_with("http://")) else {
            return Err(Failure::usage(
                "the server did not begin to listen on a TCP address without TLS",
                "see its message above; leave --unix and --tls-cert out",
            ));
        };
        server.base = format!("{address}/v1");
        let target = Target::new(&server.base, "", 1);
        while let Err(reason) = target.health() {
            if server.child.try_wait()?.is_some() {
                let hint = Some("see its message above".to_owned());
                return Err(Failure::outcome(format!("the server ended: {reason}"), hint));
            }
            thread::sleep(Duration::from_millis(50));
        }
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It has nothing to save; killing one that has ended fails.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn rate(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(rate) if rate > 0.0 && rate.is_finite() => Ok(rate),
        _ => Err("expected a number above 0".to_owned()),
    }
}
