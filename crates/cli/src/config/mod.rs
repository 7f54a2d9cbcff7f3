//! The user's defaults: the environment and the configuration file.
//!
//! The command line has precedence, followed by the environment, the sections of the host, and the top of the file.
//! Their values become the defaults of the options, so that everything else, including validation, is left to clap.
//! Rules (`--exclude`) do not replace each other: they are concatenated in this order.

mod file;
mod layers;
mod suggestions;
#[cfg(test)]
mod tests;
mod trust;

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, IsTerminal as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::Once;

use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Command};

use downpour::home;

use rustix::process::geteuid;

use crate::args::{self, Args, Rules, Settable, answer, flags, is_rule, translate};
use crate::exit::{Code, Failure};
use crate::json::{self, JsonRecord};
use crate::print::{self, warn};
use file::File;
use layers::{Layer, Setting};
use trust::{TrustError, Trusted};

/// Options of all commands, which cannot be defaults.
const OF_ALL: [&str; 4] = ["config", "help", "no-config", "version"];

/// Prefix of the variables.
const PREFIX: &str = "DOWNPOUR_";

/// Variables that are not options.
const OTHER_VARIABLES: [&str; 3] = ["DOWNPOUR_CONFIG", "DOWNPOUR_TICKET", crate::on_end::VARIABLE];

/// Reads the arguments of a program, with the user's defaults. Exits the process where clap does: help, version, usage.
pub(crate) fn read(arguments: &[OsString]) -> Result<Args, Failure> {
    let arguments = as_options(arguments);
    let mut definition = args::definition();
    definition.build();
    let translated = translate(&arguments, &definition).map_err(|advice| Failure::new(Code::Usage, advice))?;
    let arguments = &translated.arguments[..];
    let sources = ConfigSources { variables: env::vars_os().collect() };
    let command = args::command_at(arguments).and_then(|at| arguments[at].to_str()).unwrap_or_default();
    let cli = sources.read(arguments, &definition)?.map_err(|error| match answer(command, &error) {
        Some(answer) => Failure::new(Code::Usage, answer),
        None => match args::help(arguments).filter(|_| error.kind() == ErrorKind::DisplayHelp) {
            Some(help) => {
                print::write_out(help.as_bytes());
                process::exit(0);
            }
            None => {
                let shown = error.to_string();
                let Some(text) = shown.strip_prefix("error: ") else { error.exit() };
                if args::wants_json(arguments) {
                    // Usage and tips follow after an empty line.
                    let lines = text.lines().map(str::trim);
                    let message = lines.take_while(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
                    json::print(&JsonRecord::Error { message: &message, exit_code: Code::Usage as u8 });
                }
                print::write_err(format!("{}: {text}", args::NAME).as_bytes());
                process::exit(error.exit_code());
            }
        },
    })?;
    let shown = cli.output;
    // The arguments may be read a second time.
    static IS_NOTED: Once = Once::new();
    if let Some(note) = translated.note().filter(|_| io::stderr().is_terminal() && !shown.quiet && !shown.json) {
        IS_NOTED.call_once(|| warn(note));
    }
    Ok(cli)
}

/// Writes `help cp` as `cp --help`, and `version` as `--version`.
fn as_options(arguments: &[OsString]) -> Vec<OsString> {
    let (before, command) = arguments.split_at(args::command_at(arguments).unwrap_or(arguments.len()));
    let instead = |words: &[OsString], option: &str| [before, words, &[OsString::from(option)]].concat();
    match command {
        [help, of @ ..] if help == "help" => instead(of, "--help"),
        [version] if version == "version" => instead(&[], "--version"),
        _ => arguments.to_vec(),
    }
}

/// The environment of the process.
struct ConfigSources {
    variables: Vec<(OsString, OsString)>,
}

impl ConfigSources {
    /// Reads the arguments with the built definition. The inner error is clap's own, about the command line.
    fn read(&self, arguments: &[OsString], definition: &Command) -> Result<Result<Args, clap::Error>, Failure> {
        let typed = definition.clone().try_get_matches_from(arguments);
        let (cli, matches) = match typed.and_then(|matches| Ok((Args::of(&matches)?, matches))) {
            Ok(both) => both,
            Err(error) => return Ok(Err(error)),
        };
        let Some((name, typed)) = matches.subcommand() else { return Ok(Ok(cli)) };
        let Some(command) = definition.find_subcommand(name) else { return Ok(Ok(cli)) };
        // `remote`, and the commands that print documentation, are the same for every user.
        if options(command).next().is_none() {
            return Ok(Ok(cli));
        }
        self.unknown(definition).iter().for_each(warn);
        let file = if cli.no_config { None } else { self.file(cli.config.as_deref(), definition)? };
        let layers = self.layers(command, file.as_ref(), cli.reached());
        let settings = choose(command, typed, &layers)?;
        // A definition that has been used cannot be changed.
        let definition = args::definition().mut_subcommand(name, |command| with_defaults(command, settings));
        let read = definition.try_get_matches_from(arguments).and_then(|matches| Args::of(&matches));
        let Ok(mut cli) = read else { return Ok(read) };
        if cli.has_rules() {
            cli.rules.read_files()?;
            for layer in &layers {
                add_rules(&mut cli.rules, command, layer)?;
            }
        }
        Ok(Ok(cli))
    }

    /// Returns warnings about variables without effect, such as misspelled ones.
    fn unknown(&self, definition: &Command) -> Vec<String> {
        let all = || definition.get_subcommands().flat_map(options).filter_map(Arg::get_long);
        let mut known: Vec<String> = all().map(variable).collect();
        known.extend(OTHER_VARIABLES.map(str::to_owned));
        let set = self.variables.iter().filter_map(|(name, _)| name.to_str());
        let unknown = set.filter(|name| name.starts_with(PREFIX) && !known.iter().any(|known| known == name));
        let warnings = unknown.map(|name| {
            if only_typed().any(|option| variable(option) == name) {
                return format!("{name} has no effect: the option is only allowed on the command line");
            }
            // The common prefix must not count as similarity.
            let hint = suggestions::like(&name[PREFIX.len()..], known.iter().map(|known| &known[PREFIX.len()..]));
            let hint = hint.map_or_else(String::new, |like| format!(": did you mean {PREFIX}{like}?"));
            format!("{name} has no effect{hint}")
        });
        warnings.collect()
    }

    fn variable(&self, name: &str) -> Option<&OsStr> {
        self.variables.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_os_str())
    }

    /// Reads the named file, or the one at the default path.
    fn file(&self, typed: Option<&Path>, definition: &Command) -> Result<Option<File>, Failure> {
        let variable = self.variable("DOWNPOUR_CONFIG").map(|path| home::expand_typed(Path::new(path)));
        let variable = variable.transpose().map_err(|error| Failure::new(Code::Usage, error))?;
        let named = typed.map(PathBuf::from).or(variable);
        if named.as_deref() == Some(Path::new("none")) {
            return Ok(None);
        }
        let is_named = named.is_some();
        let Some(path) = named.or_else(|| self.default_path()) else { return Ok(None) };
        let text = match Trusted::user_at(self.variable("HOME").map(Path::new)).read(&path) {
            Ok(text) => text,
            Err(TrustError::Io(error)) if error.kind() == io::ErrorKind::NotFound && !is_named => return Ok(None),
            // HOME belongs to another user, as after `su` and in some services: that file is not for this user. A file of
            // this user must be readable: names that it excludes could be deleted.
            Err(TrustError::Io(error))
                if error.kind() == io::ErrorKind::PermissionDenied && !is_named && self.is_home_of_another() =>
            {
                warn(format_args!("configuration {} ignored: {error}", path.display()));
                return Ok(None);
            }
            Err(error) => {
                let message = format!("cannot read the configuration {}: {error}", path.display());
                return Err(Failure::new(Code::Usage, message));
            }
        };
        File::parse(&path, &text, definition).map(Some).map_err(|error| Failure::new(Code::Usage, error))
    }

    /// Returns whether HOME belongs to another user.
    fn is_home_of_another(&self) -> bool {
        let home = self.variable("HOME").map(fs::metadata);
        home.is_some_and(|found| found.is_ok_and(|found| found.uid() != geteuid().as_raw()))
    }

    /// Returns `~/.config/downpour/config.toml`, following the XDG rules.
    fn default_path(&self) -> Option<PathBuf> {
        let absolute = |name| self.variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let directory = absolute("XDG_CONFIG_HOME").or_else(|| absolute("HOME").map(|home| home.join(".config")))?;
        Some(directory.join("downpour/config.toml"))
    }

    /// Returns all settings for this command, nearest first.
    fn layers(&self, command: &Command, file: Option<&File>, host: Option<&str>) -> Vec<Layer> {
        let environment = options(command).filter_map(|option| {
            let variable = variable(option.get_long()?);
            Setting::of_variable(option, &variable, self.variable(&variable)?)
        });
        let mut layers = vec![environment.collect()];
        layers.extend(file.into_iter().flat_map(|file| file.layers(host)));
        layers
    }
}

/// Returns the options for single runs.
fn only_typed() -> impl Iterator<Item = &'static str> {
    flags::all().filter(|flag| flag.settable == Settable::Typed).map(|flag| flag.name).chain(OF_ALL)
}

/// Returns whether an option is for a single run.
fn is_only_typed(name: &str) -> bool {
    only_typed().any(|option| option == name)
}

/// Returns the options that can have another default.
fn options(command: &Command) -> impl Iterator<Item = &Arg> {
    command.get_arguments().filter(|option| option.get_long().is_some_and(|name| !is_only_typed(name)))
}

/// Returns the variable of an option.
fn variable(option: &str) -> String {
    format!("{PREFIX}{}", option.replace('-', "_").to_uppercase())
}

/// Returns the nearest setting for each option that was not typed, unless something nearer excludes it.
fn choose<'a>(command: &Command, typed: &ArgMatches, layers: &'a [Layer]) -> Result<Vec<&'a Setting>, Failure> {
    let is_typed =
        |option: &Arg| typed.value_source(option.get_id().as_str()) == Some(clap::parser::ValueSource::CommandLine);
    let mut decided: Vec<&Arg> = command.get_arguments().filter(|option| is_typed(option)).collect();
    let value = |option: &Arg| typed.get_raw(option.get_id().as_str()).and_then(Iterator::last);
    let mut nearer: Vec<OptionValue<'_>> = decided.iter().map(|option| (*option, value(option))).collect();
    let mut chosen = Vec::new();
    for layer in layers {
        let mut in_layer: Vec<(&Arg, &Setting)> = Vec::new();
        for setting in layer {
            let Some(option) = options(command).find(|option| option.get_long() == Some(&*setting.name)) else {
                continue;
            };
            if is_rule(&setting.name) {
                continue;
            }
            // A disabled switch neither excludes anything nor is excluded.
            let value = (option, setting.last());
            let excluded_by = |other: OptionValue<'_>| {
                !setting.is_off(option) && (exclude(command, other.0, option) || contradict(other, value))
            };
            let is_decided = decided.iter().any(|other| other.get_id() == option.get_id());
            if is_decided || nearer.iter().any(|other| excluded_by(*other)) {
                continue;
            }
            if let Some((_, other)) =
                in_layer.iter().find(|(other, set)| !set.is_off(other) && excluded_by((other, set.last())))
            {
                let message = format!("{}: {} and {} exclude each other", setting.origin, other.name, setting.name);
                return Err(Failure::new(Code::Usage, message));
            }
            let failed = |message| Failure::new(Code::Usage, format!("{}: {message}", setting.origin));
            setting.check(option).map_err(failed)?;
            in_layer.push((option, setting));
        }
        decided.extend(in_layer.iter().map(|(option, _)| *option));
        let on = in_layer.iter().filter(|(option, setting)| !setting.is_off(option));
        nearer.extend(on.map(|(option, setting)| (*option, setting.last())));
        chosen.extend(in_layer.iter().map(|(_, setting)| *setting));
    }
    Ok(chosen)
}

/// Adds the rules of a layer below those of higher layers.
fn add_rules(rules: &mut Rules, definition: &Command, layer: &Layer) -> Result<(), Failure> {
    for setting in layer.iter().filter(|setting| is_rule(&setting.name)) {
        let option = options(definition).find(|option| option.get_long() == Some(&*setting.name));
        let checked = option.map_or(Ok(()), |option| setting.check(option));
        checked.map_err(|message| Failure::new(Code::Usage, format!("{}: {message}", setting.origin)))?;
    }
    let patterns = |name: &str| layer.iter().find(|setting| setting.name == name).map(|setting| &setting.values[..]);
    rules.add(patterns).map_err(|error| Failure::new(Code::Usage, error))
}

/// Returns whether the two options conflict according to clap.
fn exclude(command: &Command, a: &Arg, b: &Arg) -> bool {
    let names = |one: &Arg, other: &Arg| {
        command.get_arg_conflicts_with(one).iter().any(|conflict| conflict.get_id() == other.get_id())
    };
    names(a, b) || names(b, a)
}

/// An option and its value; of a list, the last one.
type OptionValue<'a> = (&'a Arg, Option<&'a OsStr>);

/// Returns whether the two options exclude each other with these values, which clap does not know: then the nearer one
/// counts.
fn contradict(a: OptionValue<'_>, b: OptionValue<'_>) -> bool {
    let one = |(policy, value): OptionValue<'_>, (other, chosen): OptionValue<'_>| {
        let chosen = chosen.and_then(OsStr::to_str);
        let excludes = match (value.and_then(OsStr::to_str), other.get_long()) {
            (Some("low"), Some("rate")) => true,
            // The controllers of other profiles have no policy.
            (Some("low"), Some("profile")) => chosen != Some("auto"),
            (Some("low"), Some("set")) => chosen
                .and_then(|chosen| chosen.strip_prefix("congestion="))
                .is_some_and(|controller| controller.split(':').next() != Some("auto")),
            // It needs --rate.
            (Some("fixed"), Some("min-rate")) => true,
            _ => false,
        };
        policy.get_long() == Some("policy") && excludes
    };
    one(a, b) || one(b, a)
}

fn with_defaults(command: Command, settings: Vec<&Setting>) -> Command {
    settings.into_iter().fold(command, |command, setting| {
        let is_it = |option: &&Arg| option.get_long() == Some(&*setting.name);
        let Some(id) = command.get_arguments().find(is_it).map(|option| option.get_id().to_string()) else {
            return command;
        };
        command.mut_arg(id, |option| option.default_values(setting.values.clone()))
    })
}

/// Returns whether an option is a switch, without a value.
fn is_switch(option: &Arg) -> bool {
    matches!(option.get_action(), ArgAction::SetTrue)
}
