//! The bytes of one connection, read and written on the thread that waits for them.
//!
//! The driver connects, encrypts and signs in. Then the stream is taken from it: what follows is spoken in [`super::wire`],
//! which can put many statements into one round trip. A socket without encryption is switched to blocking calls, so that
//! a round trip is one `send` and one `recv`.

use std::future::Future;
use std::io::{Error, ErrorKind, Read, Result, Write};
use std::os::unix::net::UnixStream;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::runtime::Runtime;
use tokio_postgres::tls::{ChannelBinding, TlsConnect, TlsStream};

/// Something that is lent to the driver, and taken back when it has signed in.
pub(super) struct Lent<S>(Arc<Mutex<Option<S>>>);

impl<S> Lent<S> {
    pub(super) fn new(stream: Option<S>) -> Self {
        Self(Arc::new(Mutex::new(stream)))
    }

    /// Another end of the same loan.
    pub(super) fn again(&self) -> Self {
        Self(Arc::clone(&self.0))
    }

    pub(super) fn take(&self) -> Option<S> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn lend(&self, stream: S) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(stream);
    }

    fn with<T>(&self, work: impl FnOnce(&mut S) -> T) -> Option<T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).as_mut().map(work)
    }
}

fn taken<T>() -> Poll<Result<T>> {
    Poll::Ready(Err(Error::new(ErrorKind::NotConnected, "the stream was taken back")))
}

impl<S: AsyncRead + Unpin> AsyncRead for Lent<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<Result<()>> {
        self.with(|stream| Pin::new(stream).poll_read(cx, buf)).unwrap_or_else(taken)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Lent<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<Result<usize>> {
        self.with(|stream| Pin::new(stream).poll_write(cx, buf)).unwrap_or_else(taken)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        self.with(|stream| Pin::new(stream).poll_flush(cx)).unwrap_or_else(taken)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        self.with(|stream| Pin::new(stream).poll_shutdown(cx)).unwrap_or_else(taken)
    }
}

impl<S: TlsStream + Unpin> TlsStream for Lent<S> {
    fn channel_binding(&self) -> ChannelBinding {
        self.with(|stream| stream.channel_binding()).unwrap_or_else(ChannelBinding::none)
    }
}

pub(super) struct Encrypting<T, S> {
    pub(super) tls: T,
    pub(super) lent: Lent<S>,
}

impl<R, T> TlsConnect<R> for Encrypting<T, T::Stream>
where
    T: TlsConnect<R, Future: Send + 'static, Error: 'static>,
    T::Stream: Send + 'static,
{
    type Stream = Lent<T::Stream>;
    type Error = T::Error;
    type Future = Pin<Box<dyn Future<Output = std::result::Result<Self::Stream, T::Error>> + Send>>;

    fn connect(self, stream: R) -> Self::Future {
        let (connecting, lent) = (self.tls.connect(stream), self.lent);
        Box::pin(async move {
            lent.lend(connecting.await?);
            Ok(lent)
        })
    }
}

/// Anything that bytes go in and out of.
pub(super) trait Duplex: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Duplex for T {}

/// A connection that is waited for on its own thread.
pub(super) enum Stream {
    Tcp(std::net::TcpStream),
    Unix(UnixStream),
    /// Encrypted; the limit is how long to wait.
    Tls(Box<dyn Duplex>, Option<Duration>),
}

impl Stream {
    /// Sets how long a read may wait.
    pub(super) fn wait_at_most(&mut self, limit: Option<Duration>) -> Result<()> {
        match self {
            Self::Tcp(stream) => stream.set_read_timeout(limit),
            Self::Unix(stream) => stream.set_read_timeout(limit),
            Self::Tls(_, most) => {
                *most = limit;
                Ok(())
            }
        }
    }

    pub(super) fn send(&mut self, runtime: &Runtime, bytes: &[u8]) -> Result<()> {
        match self {
            Self::Tcp(stream) => stream.write_all(bytes),
            Self::Unix(stream) => stream.write_all(bytes),
            Self::Tls(stream, _) => runtime.block_on(async {
                stream.write_all(bytes).await?;
                stream.flush().await
            }),
        }
    }

    /// Waits for some bytes; none is the end.
    pub(super) fn receive(&mut self, runtime: &Runtime, bytes: &mut [u8]) -> Result<usize> {
        loop {
            let received = match self {
                Self::Tcp(stream) => stream.read(bytes),
                Self::Unix(stream) => stream.read(bytes),
                Self::Tls(stream, None) => runtime.block_on(stream.read(bytes)),
                Self::Tls(stream, Some(limit)) => {
                    let (reading, limit) = (stream.read(bytes), *limit);
                    let late = |_| Err(ErrorKind::TimedOut.into());
                    runtime
                        .block_on(async { tokio::time::timeout(limit, reading).await.unwrap_or_else(late) })
                }
            };
            match received {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                received => return received,
            }
        }
    }
}
