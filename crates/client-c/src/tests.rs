use crate::call::argument;
use crate::*;
use std::ffi::CStr;
use std::path::Path;
use std::ptr::{null, null_mut};

const NOTHING: Bytes = Bytes {
    data: null(),
    length: 0,
};

fn message() -> String {
    // SAFETY: the message is NUL-terminated and valid until the next failure.
    let message = unsafe { CStr::from_ptr(glimmer_message()) };
    message.to_str().unwrap().to_owned()
}

/// Compares the header with this crate. With GLIMMER_BLESS in the environment, the test writes the
/// header.
#[test]
fn the_header_is_this_crates() {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(crate_folder.join("cbindgen.toml")).unwrap();
    let builder = cbindgen::Builder::new()
        .with_config(config)
        .with_src(crate_folder.join("src/lib.rs"));
    let mut header = Vec::new();
    builder.generate().unwrap().write(&mut header);
    let file = crate_folder.join("include/glimmer.h");
    if std::env::var_os("GLIMMER_BLESS").is_some() {
        std::fs::write(&file, &header).unwrap();
    }
    let committed = std::fs::read_to_string(&file).unwrap();
    let header = String::from_utf8(header).unwrap();
    assert!(
        committed == header,
        "run this test with GLIMMER_BLESS=1 to bring include/glimmer.h up to date"
    );
}

#[test]
fn a_failed_connection_is_an_outcome_with_a_message() {
    let mut outcome = Outcome::Ok;
    // SAFETY: hosts are null or NUL-terminated, there are no members, and the outcome may be
    // written to.
    unsafe {
        assert!(glimmer_connect(null(), 1, null(), &mut outcome).is_null());
        assert_eq!(outcome, Outcome::Argument);
        let host = c"no-such-host.invalid".as_ptr();
        assert!(glimmer_connect(host, 1, null(), &mut outcome).is_null());
        assert_eq!(outcome, Outcome::NoAddress);
        assert!(message().contains("no-such-host.invalid"), "{}", message());
        assert!(glimmer_connect(host, 1, null(), null_mut()).is_null());

        let closed = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = closed.local_addr().unwrap();
        drop(closed);
        let host = c"127.0.0.1".as_ptr();
        assert!(glimmer_connect(host, address.port(), null(), &mut outcome).is_null());
        assert_eq!(outcome, Outcome::Refused);
        assert!(message().contains(&address.to_string()), "{}", message());

        assert!(glimmer_connect_to_all(null(), 0, 0, null(), &mut outcome).is_null());
        assert_eq!(outcome, Outcome::NoAddress);
        assert!(glimmer_connect_to_all(null(), 2, 0, null(), &mut outcome).is_null());
        assert_eq!(outcome, Outcome::Argument);
        assert!(glimmer_connect_to_all(null(), 0, 3, null(), &mut outcome).is_null());
        assert_eq!(outcome, Outcome::Argument);
    }
}

/// A server that answers each read with the first fragment of a message of 4 GiB.
fn lying_server() -> u16 {
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = socket.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let mut request = [0; 2048];
        while let Ok((_, client)) = socket.recv_from(&mut request) {
            let (kind, rest) = match request[2] {
                0x02 => (0x82, directory(port)),
                _ => {
                    let head = [&u32::MAX.to_le_bytes()[..], &[0; 4], &[7; 8]].concat();
                    (0x83, [&head[..], &[b'x'; 1352]].concat())
                }
            };
            let mut reply = vec![request[0], request[1], kind, 1, 1, 0, 0, 0];
            reply.extend_from_slice(&request[8..16]);
            reply.extend_from_slice(&rest);
            if socket.send_to(&reply, client).is_err() {
                return;
            }
        }
    });
    port
}

/// The directory of a server with one core and items of up to 1 MiB.
fn directory(port: u16) -> Vec<u8> {
    let mut bytes = vec![0; 16];
    bytes.extend_from_slice(&(1_u32 << 20).to_le_bytes());
    // Partitions and cores; mode, access, direction.
    bytes.extend_from_slice(&[1, 0, 1, 0, 1, 2, 0, 0]);
    bytes.extend_from_slice(&3600_u32.to_le_bytes());
    bytes.extend_from_slice(&1024_u32.to_le_bytes());
    bytes.extend_from_slice(&port.to_le_bytes());
    bytes
}

#[test]
fn a_server_that_lies_about_a_length_is_not_believed() {
    let port = lying_server();
    let mut outcome = Outcome::Ok;
    let key = Bytes {
        data: b"key".as_ptr(),
        length: 3,
    };
    // SAFETY: the host is NUL-terminated, the settings are null, and client, item and key are
    // valid.
    unsafe {
        let client = glimmer_connect(c"127.0.0.1".as_ptr(), port, null(), &mut outcome);
        assert_eq!(outcome, Outcome::Ok, "{}", message());
        let item = glimmer_item_new();
        assert_eq!(glimmer_get(client, key, item), Outcome::Protocol);
        glimmer_item_free(item);
        glimmer_free(client);
    }
}

#[test]
fn a_null_client_is_an_outcome_of_every_function() {
    let (client, item) = (null_mut(), glimmer_item_new());
    let mut number = 0;
    // SAFETY: the client is null, the item comes from the library, and nothing else is used.
    unsafe {
        let outcomes = [
            glimmer_get(client, NOTHING, item),
            glimmer_get_for_swap(client, NOTHING, item),
            glimmer_get_many(client, null(), 0, null(), null_mut()),
            glimmer_put(client, NOTHING, NOTHING, 0, 0),
            glimmer_add(client, NOTHING, NOTHING, 0, 0),
            glimmer_replace(client, NOTHING, NOTHING, 0, 0),
            glimmer_compare_and_swap(client, NOTHING, 0, NOTHING, 0, 0),
            glimmer_increment(client, NOTHING, 1, &mut number),
            glimmer_decrement(client, NOTHING, 1, &mut number),
            glimmer_delete(client, NOTHING),
            glimmer_touch(client, NOTHING, 0),
        ];
        assert_eq!(outcomes, [Outcome::Argument; 11]);
        assert_eq!(message(), "the client is null");
        glimmer_item_free(item);
        glimmer_item_free(null_mut());
        glimmer_free(client);
        assert_eq!(glimmer_item_value(null()).length, 0);
    }
}

/// Otherwise a program that reads the item without looking at the outcome has another key's value.
#[test]
fn an_item_has_no_value_after_a_read_that_failed() {
    let port = lying_server();
    let old = || native::Item {
        value: b"old".to_vec(),
        flags: 7,
        cas: 7,
    };
    let beyond = Bytes {
        data: null(),
        length: 5,
    };
    // SAFETY: the host is NUL-terminated, the settings are null, client and item come from the
    // library, and no bytes are read from a key without any.
    unsafe {
        let client = glimmer_connect(c"127.0.0.1".as_ptr(), port, null(), null_mut());
        let item = glimmer_item_new();
        for (client, key, outcome) in [
            (null_mut(), NOTHING, Outcome::Argument),
            (client, beyond, Outcome::Argument),
            (client, NOTHING, Outcome::Key),
        ] {
            for read in [glimmer_get, glimmer_get_for_swap] {
                (*item).set(Some(old()));
                assert_eq!(read(client, key, item), outcome);
                assert_eq!(glimmer_item_value(item).length, 0, "{outcome:?}");
                assert_eq!((glimmer_item_flags(item), glimmer_item_cas(item)), (0, 0));
            }
        }
        glimmer_item_free(item);
        glimmer_free(client);
    }
}

#[test]
fn a_length_without_bytes_is_an_argument_that_means_nothing() {
    let some = |data, length| Bytes { data, length };
    // SAFETY: the pointers are null, or the length exceeds the limit, so nothing is read.
    unsafe {
        assert_eq!(some(null(), 0).slice(), Ok(&[][..]));
        assert_eq!(some(null(), 1).slice(), Err(Outcome::Argument));
        let beyond = some(b"a".as_ptr(), usize::MAX);
        assert_eq!(beyond.slice(), Err(Outcome::Argument));
    }
    assert_eq!(argument("why\0not"), Outcome::Argument);
    assert_eq!(message(), "why not");
}

#[test]
fn every_outcome_has_words_and_no_other_number_has() {
    // SAFETY: the text is NUL-terminated and static.
    let text = |number| unsafe { CStr::from_ptr(glimmer_outcome_text(number)) };
    let unknown = text(u32::MAX);
    let known: Vec<u32> = (0..100).filter(|&number| text(number) != unknown).collect();
    let numbers = [0, 1, 2]
        .into_iter()
        .chain(Outcome::Key as u32..=Outcome::Internal as u32);
    assert!(known.into_iter().eq(numbers));
}
