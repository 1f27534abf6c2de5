//! A socket whose other end has to read: one that takes nothing of what is written for too long is given up.
//!
//! A deadline is set only when the socket takes no more, so whoever reads along pays nothing for it.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep_until};

use super::Connection;

/// A socket whose other end has to read.
pub(crate) struct WatchedStream {
    stream: TcpStream,
    connection: Arc<Connection>,
    limit: Duration,
    is_stalled: bool,
    deadline: Option<Pin<Box<Sleep>>>,
}

impl WatchedStream {
    pub(crate) fn new(stream: TcpStream, connection: Arc<Connection>, limit: Duration) -> Self {
        Self { stream, connection, limit, is_stalled: false, deadline: None }
    }

    fn judge<T>(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            if self.is_stalled {
                self.is_stalled = false;
                self.connection.is_stalled.store(false, Ordering::Relaxed);
            }
            return written;
        }
        let until = || Instant::now() + self.limit;
        let deadline = self.deadline.get_or_insert_with(|| Box::pin(sleep_until(until())));
        if !self.is_stalled {
            self.is_stalled = true;
            self.connection.is_stalled.store(true, Ordering::Relaxed);
            deadline.as_mut().reset(Instant::now() + self.limit);
        }
        if deadline.as_mut().poll(cx).is_pending() {
            return Poll::Pending;
        }
        self.connection.all.counts.unread.fetch_add(1, Ordering::Relaxed);
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client does not read")))
    }
}

impl AsyncRead for WatchedStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for WatchedStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write(cx, bytes);
        this.judge(cx, written)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write_vectored(cx, bytes);
        this.judge(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}
