//! Streams over Unix sockets. Accepted connections are [`SocketStream`](crate::tcp::SocketStream)s,
//! as over TCP.

use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use rustix::fs::Mode;
use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use rustix::process::umask;

use crate::Listener;

/// Listens at a path and gives it the permissions `mode` (as for `chmod`). As in memcached, a
/// socket left by an earlier server is replaced; any other kind of file is an error
/// ([`io::ErrorKind::AlreadyExists`]).
///
/// The process's umask changes during the call, so no other thread may create files at the same
/// time.
pub fn listen(path: &Path, mode: u32, backlog: i32) -> io::Result<Listener> {
    if let Ok(there) = path.symlink_metadata() {
        if !there.file_type().is_socket() {
            let story = "what lies there is no socket; remove it, or choose another path";
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, story));
        }
        std::fs::remove_file(path)?;
    }
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    let address = SocketAddrUnix::new(path)?;
    let before = umask(Mode::from_raw_mode(!mode & 0o777));
    let bound = net::bind(&socket, &address);
    umask(before);
    bound?;
    net::listen(&socket, backlog)?;
    Ok(Listener::from_socket(socket))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Poller, Received, Sent};
    use std::io::{Read, Write};
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_stream_over_a_unix_socket_is_a_stream() {
        let folder = std::env::temp_dir().join(format!("unix-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("socket");
        drop(listen(&path, 0o700, 8).unwrap());
        assert!(path.exists(), "a socket is left behind");
        let listener = listen(&path, 0o750, 8).expect("and replaced");
        let mode = path.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o750);

        let mut poller = Poller::new(8).unwrap();
        poller.watch_level(&listener, 0).unwrap();
        let mut peer = UnixStream::connect(&path).unwrap();
        poller.wait(None).unwrap();
        let stream = listener.accept().unwrap().expect("a connection waits");
        peer.write_all(b"ping").unwrap();
        let mut received = Vec::with_capacity(16);
        assert_eq!(stream.receive(&mut received), Received::Drained(4));
        assert_eq!(stream.send(b"pong"), Sent::All);
        let mut reply = [0; 4];
        peer.read_exact(&mut reply).unwrap();
        assert_eq!(&reply, b"pong");

        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "a file").unwrap();
        let error = listen(&path, 0o700, 8).expect_err("a file stays");
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);

        // Links that another user has left are not followed.
        let link = folder.join("link");
        for target in ["socket", "none"] {
            std::os::unix::fs::symlink(folder.join(target), &link).unwrap();
            let error = listen(&link, 0o700, 8).expect_err("a link stays");
            assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
            std::fs::remove_file(&link).unwrap();
        }
        assert!(!folder.join("none").exists());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
