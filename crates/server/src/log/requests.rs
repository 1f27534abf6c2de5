//! A fast formatter for the log line of a request. Every request writes one, and the general formatter took as long as
//! answering the request. The output is the same.

use std::cell::RefCell;
use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{self, FormatTime as _};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

const TARGET: &str = "podium::request";
/// The length of `2026-11-16T12:00:00.`, which stays the same for a second.
const SECOND: usize = 20;
/// The length with microseconds and the zone.
const MOMENT: usize = 27;

/// Formats the lines of requests itself, and leaves all others to `F`.
pub(super) struct Short<F>(pub(super) F);

impl<S, N, F> FormatEvent<S, N> for Short<F>
where
    S: Subscriber + for<'l> LookupSpan<'l>,
    N: for<'w> FormatFields<'w> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let metadata = event.metadata();
        let is_plain = metadata.target() == TARGET && !writer.has_ansi_escapes();
        if !is_plain || context.lookup_current().is_some() {
            return self.0.format_event(context, writer, event);
        }
        write_time(&mut writer)?;
        writer.write_str(match *metadata.level() {
            Level::ERROR => " ERROR ",
            Level::WARN => "  WARN ",
            Level::INFO => "  INFO ",
            Level::DEBUG => " DEBUG ",
            Level::TRACE => " TRACE ",
        })?;
        writer.write_str(TARGET)?;
        writer.write_str(":")?;
        let mut fields = Fields { writer, result: Ok(()) };
        event.record(&mut fields);
        fields.result?;
        fields.writer.write_str("\n")
    }
}

#[expect(clippy::disallowed_methods, reason = "lines of the log carry the machine's time")]
fn wall_clock() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Writes the time; the part that stays the same for a second is formatted once.
fn write_time(writer: &mut Writer<'_>) -> fmt::Result {
    thread_local! {
        static KNOWN: RefCell<(u64, String)> = const { RefCell::new((0, String::new())) };
    }
    let now = wall_clock();
    KNOWN.with_borrow_mut(|(second, text)| {
        if *second != now.as_secs() {
            text.clear();
            time::SystemTime.format_time(&mut Writer::new(text))?;
            if text.len() != MOMENT || wall_clock().as_secs() != now.as_secs() {
                *second = 0;
                return writer.write_str(text);
            }
            *second = now.as_secs();
            text.truncate(SECOND);
        }
        writer.write_str(text)?;
        let mut digits = *b"000000Z";
        let mut rest = now.subsec_micros();
        for digit in digits[..6].iter_mut().rev() {
            *digit += (rest % 10) as u8;
            rest /= 10;
        }
        writer.write_str(std::str::from_utf8(&digits).unwrap_or_default())
    })
}

struct Fields<'w> {
    writer: Writer<'w>,
    result: fmt::Result,
}

impl Fields<'_> {
    fn write(&mut self, field: &Field, value: impl FnOnce(&mut Writer<'_>) -> fmt::Result) {
        let writer = &mut self.writer;
        self.result = self.result.and_then(|()| {
            writer.write_str(" ")?;
            writer.write_str(field.name())?;
            writer.write_str("=")?;
            value(writer)
        });
    }
}

impl Visit for Fields<'_> {
    fn record_u64(&mut self, field: &Field, value: u64) {
        self.write(field, |writer| {
            let (mut digits, mut first, mut rest) = ([0; 20], 20, value);
            loop {
                first -= 1;
                digits[first] = b'0' + (rest % 10) as u8;
                rest /= 10;
                if rest == 0 {
                    break;
                }
            }
            writer.write_str(std::str::from_utf8(&digits[first..]).unwrap_or_default())
        });
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        let is_plain = |byte: u8| matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\';
        self.write(field, |writer| {
            if value.bytes().all(is_plain) {
                writer.write_str("\"")?;
                writer.write_str(value)?;
                writer.write_str("\"")
            } else {
                write!(writer, "{value:?}")
            }
        });
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.write(field, |writer| write!(writer, "{value:?}"));
    }
}

#[cfg(test)]
mod tests {
    use tracing_subscriber::fmt::format::Format;

    use super::*;
    use crate::log::Log;

    fn lines(short: bool) -> String {
        let log = Log::default();
        let builder = tracing_subscriber::fmt().with_writer(log.clone()).with_ansi(false);
        let write = || {
            for path in ["/v1/users/self", "/a\"b\\c\u{1b}[31m\n\u{fc}", ""] {
                let (method, status, micros, owned) = ("GET", 200_u16, u64::MAX, path.to_owned());
                tracing::info!(target: "podium::request", %method, path, status, micros, user = "", owned);
                tracing::debug!(target: "podium::request", status = 0_u16, %path);
                tracing::info!(path, "something else");
            }
        };
        if short {
            let subscriber = builder.event_format(Short(Format::default())).finish();
            tracing::subscriber::with_default(subscriber, write);
        } else {
            tracing::subscriber::with_default(builder.finish(), write);
        }
        let text = String::from_utf8(std::mem::take(&mut *log.0.lock().unwrap())).unwrap();
        let without_time = |line: &str| {
            assert!(
                line.as_bytes()[..SECOND].iter().all(|byte| byte.is_ascii_digit() || b"-T:.".contains(byte))
            );
            assert_eq!(&line[MOMENT - 1..=MOMENT], "Z ");
            line[MOMENT..].to_owned()
        };
        text.lines().map(without_time).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn the_fast_formatter_writes_the_same_line() {
        let (short, long) = (lines(true), lines(false));
        assert_eq!(short, long);
        assert_eq!(short.lines().count(), 6, "{short}");
        let line = r#" INFO podium::request: method=GET path="/v1/users/self" status=200"#;
        assert!(short.trim_start().starts_with(line.trim_start()), "{short}");
    }
}
