//! Loom explores uploads: a value that is received by a thread of its own, beside a writer that
//! needs the place and beside readers of what lay there. See `loom_draft.rs`. What counts as large
//! here are items of eight words.
#![cfg(loom)]

#[path = "support/large.rs"]
mod large;

use glimmer_base::sync::explore;
use glimmer_store::heap::Item;
use glimmer_store::table::{
    Announced, Begun, Headway, Stored, Table, TableReader, TableWriter, Upload,
};
use large::*;
use loom::thread;

fn seen(item: &Item<'_>) -> Vec<u8> {
    let mut value = Vec::new();
    item.value().append_to(&mut value);
    value
}

/// What the writer finds.
fn find<T: Table>(owner: &mut T, (key, keyhash): Key) -> Option<Vec<u8>> {
    owner.enter(0).read(keyhash, &key, NOW, seen)
}

fn begin<T: Table>(owner: &mut T, (key, keyhash): Key) -> Upload {
    let announced = Announced {
        key: &key,
        keyhash,
        value_bytes: LARGE,
        part: 1,
        now: NOW,
    };
    let headway = &mut Headway::new(u64::MAX);
    match owner.begin_upload(Default::default(), 0, &announced, headway) {
        Begun::Yes(upload) => upload,
        _ => panic!("there is room for one"),
    }
}

/// The value in two slices.
fn receive(upload: &Upload, fill: u8) {
    upload.write(0, &[fill; LARGE / 2]);
    upload.write(LARGE / 2, &[fill; LARGE / 2]);
}

fn complete<T: Table>(
    owner: &mut T,
    flushes: u64,
    (key, keyhash): Key,
    (upload, fill): (Upload, u8),
) {
    let mut stored = None;
    owner
        .enter(flushes)
        .with_upload(upload, &mut |writer, value| {
            assert_eq!(value, [fill; LARGE], "it has changed on its way");
            stored = Some(writer.put(keyhash, &item(&key, value), NOW));
        });
    assert!(matches!(stored, Some(Stored::Yes(_))));
}

/// A value is received where items lie that are evicted for it, by a thread that has not reserved
/// the place, beside a reader of one of them.
#[test]
fn what_is_received_over_items_is_not_torn() {
    explore(1, || {
        let mut owner = cache(22, false);
        let mut looker = looker(&mut owner);
        for n in 0..7 {
            put(&mut owner, 0, key(0, n), &[1 + n as u8; 8]);
        }
        let reading = thread::spawn(move || {
            let (key, keyhash) = key(0, 3);
            let batch = looker.participant.begin();
            let found = (looker.reader).peek(&batch, keyhash, &key, NOW, 0, seen);
            if let Ok(Some(found)) = found {
                assert_eq!(found, [4; 8], "torn, or another item's value");
            }
        });
        let upload = begin(&mut owner, key(1, 0));
        let receiving = thread::spawn(move || {
            upload.write(0, &[9; LARGE]);
            upload
        });
        let upload = receiving.join().unwrap();
        complete(&mut owner, 0, key(1, 0), (upload, 9));
        reading.join().unwrap();
        assert_eq!(find(&mut owner, key(1, 0)), Some(vec![9; LARGE]));
    });
}

/// A reader sees all of a value that was received, or nothing.
#[test]
fn what_was_received_is_not_torn() {
    explore(2, || {
        let mut owner = cache(22, false);
        let mut looker = looker(&mut owner);
        let upload = begin(&mut owner, key(0, 0));
        let receiving = thread::spawn(move || {
            upload.write(0, &[9; LARGE]);
            upload
        });
        let reading = thread::spawn(move || {
            let (key, keyhash) = key(0, 0);
            let batch = looker.participant.begin();
            let found = (looker.reader).peek(&batch, keyhash, &key, NOW, 0, seen);
            if let Ok(Some(found)) = found {
                assert_eq!(found, [9; LARGE], "torn");
            }
        });
        let upload = receiving.join().unwrap();
        complete(&mut owner, 0, key(0, 0), (upload, 9));
        reading.join().unwrap();
    });
}

/// A log with an item before an upload, so that the head that comes to the upload for a large item
/// moves it.
fn before_an_upload() -> (Cache, Upload) {
    let mut owner = cache(22, false);
    put(&mut owner, 0, key(0, 0), &[1; 8]);
    let upload = begin(&mut owner, key(1, 0));
    put_large(&mut owner, key(0, 1), 2);
    (owner, upload)
}

/// The writer needs the place of an upload while bytes arrive.
#[test]
fn an_upload_that_is_moved_is_whole() {
    explore(2, || {
        let (mut owner, upload) = before_an_upload();
        let receiving = thread::spawn(move || {
            receive(&upload, 9);
            upload
        });
        put(&mut owner, 0, key(0, 2), &[3; LARGE]);
        let upload = receiving.join().unwrap();
        assert_eq!(find(&mut owner, key(0, 2)), Some(vec![3; LARGE]));
        complete(&mut owner, 0, key(1, 0), (upload, 9));
        assert_eq!(find(&mut owner, key(1, 0)), Some(vec![9; LARGE]));
        owner.enter(0).audit();
    });
}

/// The same where the upload stays where it is, as little room is wanted.
#[test]
fn an_upload_that_stays_is_whole() {
    explore(2, || {
        let (mut owner, upload) = before_an_upload();
        let receiving = thread::spawn(move || {
            receive(&upload, 9);
            upload
        });
        for n in 2..4 {
            put(&mut owner, 0, key(0, n), &[1 + n as u8; 16]);
        }
        let upload = receiving.join().unwrap();
        complete(&mut owner, 0, key(1, 0), (upload, 9));
        assert_eq!(find(&mut owner, key(1, 0)), Some(vec![9; LARGE]));
        owner.enter(0).audit();
    });
}

/// An upload is given up beside a writer that takes its place for other items.
#[test]
fn a_place_that_is_given_up_is_not_stored_to() {
    explore(2, || {
        let (mut owner, upload) = before_an_upload();
        let receiving = thread::spawn(move || {
            upload.write(0, &[9; LARGE / 2]);
            drop(upload);
        });
        for n in 2..4 {
            put(&mut owner, 0, key(0, n), &[1 + n as u8; LARGE]);
            assert_eq!(find(&mut owner, key(0, n)), Some(vec![1 + n as u8; LARGE]));
        }
        receiving.join().unwrap();
        assert_eq!(find(&mut owner, key(0, 3)), Some(vec![4; LARGE]));
        owner.enter(0).audit();
    });
}

/// A flush empties a log in which a value is being received.
#[test]
fn an_upload_survives_a_flush() {
    explore(2, || {
        let (mut owner, upload) = before_an_upload();
        let receiving = thread::spawn(move || {
            receive(&upload, 9);
            upload
        });
        put(&mut owner, 1, key(0, 2), &[3; 8]);
        let upload = receiving.join().unwrap();
        complete(&mut owner, 1, key(1, 0), (upload, 9));
        let mut writer = owner.enter(1);
        let (key, keyhash) = key(1, 0);
        assert_eq!(writer.read(keyhash, &key, NOW, seen), Some(vec![9; LARGE]));
        writer.audit();
    });
}

/// The same in store mode.
#[test]
fn an_upload_survives_a_flush_in_store_mode() {
    explore(2, || {
        let mut owner = store(80);
        put(&mut owner, 0, key(0, 0), &[1; 8]);
        let upload = begin(&mut owner, key(1, 0));
        let receiving = thread::spawn(move || {
            receive(&upload, 9);
            upload
        });
        put(&mut owner, 1, key(0, 2), &[3; 8]);
        let upload = receiving.join().unwrap();
        complete(&mut owner, 1, key(1, 0), (upload, 9));
        let mut writer = owner.enter(1);
        let (key, keyhash) = key(1, 0);
        assert_eq!(writer.read(keyhash, &key, NOW, seen), Some(vec![9; LARGE]));
        writer.audit();
    });
}

/// In store mode, an upload is given up beside a writer that wants its place.
#[test]
fn a_place_in_store_mode_that_is_given_up_is_not_stored_to() {
    explore(2, || {
        let mut owner = store(38);
        let upload = begin(&mut owner, key(1, 0));
        let receiving = thread::spawn(move || {
            upload.write(0, &[9; LARGE / 2]);
            drop(upload);
        });
        let (gone, keyhash) = key(0, 1);
        let value = [2; LARGE];
        for _ in 0..2 {
            let stored = owner.enter(0).put(keyhash, &item(&gone, &value), NOW);
            if matches!(stored, Stored::Yes(_)) {
                assert_eq!(find(&mut owner, key(0, 1)), Some(vec![2; LARGE]));
            }
        }
        receiving.join().unwrap();
        owner.enter(0).audit();
    });
}
