//! How a table's writing side begins an [`Upload`], takes its place back, and executes a request
//! with it.

use super::handles::{Design, Owner, Writer, note_read};
use super::shared::{Heap, HomeBucketIn, Shared};
use super::upload::{Announced, Begun, Receiving, Underway, Upload};
use super::{
    Absence, Draft, Headway, Purpose, Reservation, Reserved, Step, Stored, Table, TableWriter,
};
use crate::heap::{
    CasSequence, History, Item, NewItem, Put, bytes_in_place, draft_layout, write_announced,
};
use crate::memory::Words;
use glimmer_base::sync::Arc;
use glimmer_base::{Expiry, Keyhash, Moment};

impl<H: Heap> Receiving for Arc<Shared<H>> {
    fn underway(&self) -> &Underway {
        &self.common.uploads
    }
}

impl<D: Design> Owner<D> {
    /// See [`Table::begin_upload`].
    #[cold]
    #[inline(never)]
    pub(super) fn receive(
        &mut self,
        home: HomeBucketIn<D::Heap>,
        flushes: u64,
        announced: &Announced<'_>,
        headway: &mut Headway,
    ) -> Begun {
        let Announced {
            key,
            keyhash,
            value_bytes,
            part,
            now,
        } = *announced;
        let reservation = Reservation::of(Purpose::Upload, (key, keyhash), value_bytes, now);
        let Some(mut reservation) = reservation else {
            return Begun::Never;
        };
        let shared = self.shared.clone();
        let item_words_max = shared.heap.item_words_max() as u64;
        if shared.common.groups.is_some() {
            // While the value arrives, its group may be invalidated.
            reservation.grow_for_birth(item_words_max);
        }
        reservation.go_on(headway);
        while reservation.may_pass() {
            let mut writer = self.enter_at(keyhash, home, flushes);
            writer.take_back_uploads();
            let words = reservation.words;
            let most = D::upload_words_max(&writer) / part;
            let held = D::upload_words(&mut writer);
            if words > item_words_max {
                return Begun::Never;
            }
            if held > 0 && held + words > most {
                headway.forget();
                return Begun::Full;
            }
            let step = D::reserve(&mut writer, &mut reservation);
            *headway = reservation.headway();
            match step {
                Step::Reserved(place) => {
                    let words = D::place_of(&shared, place);
                    write_announced(words, key, value_bytes);
                    let value_at = draft_layout(key, value_bytes).value_at();
                    let table = Box::new(shared.clone());
                    let value = (value_at, value_bytes);
                    // SAFETY: the place is one of this table's.
                    let upload = unsafe { Upload::new(table, (place, words), value, keyhash) };
                    writer.ledger().uploads.begin(upload.cell().clone());
                    return Begun::Yes(upload);
                }
                Step::Again => writer.leave(),
                Step::Never => return Begun::Never,
            }
        }
        Begun::Again
    }
}

impl<D: Design> Writer<'_, D> {
    /// Takes back the places of uploads that were dropped.
    pub(crate) fn take_back_uploads(&mut self) {
        if self.shared.common.uploads.were_given_up() {
            self.take_back_given_up();
        }
    }

    #[cold]
    #[inline(never)]
    fn take_back_given_up(&mut self) {
        let cells = self.ledger().uploads.cells();
        let given_up: Vec<Reserved> = cells
            .filter(|cell| cell.is_given_up())
            .map(|cell| cell.place())
            .collect();
        for place in given_up {
            self.ledger().uploads.end(place.at);
            D::abandon(self, place);
        }
    }

    /// See [`TableWriter::with_upload`].
    pub(super) fn execute_with_upload(
        &mut self,
        mut upload: Upload,
        execute: &mut dyn FnMut(&mut dyn TableWriter, &[u8]),
    ) {
        let place = upload.cell().place();
        let uploads = &mut self.ledger().uploads;
        let known = uploads.at(place.at);
        if !known.is_some_and(|cell| Arc::ptr_eq(cell, upload.cell())) {
            // It lies in a table that there was before this one.
            let mut copy = Vec::new();
            upload.copy_to(0..upload.bytes(), &mut copy);
            return execute(self, &copy);
        }
        uploads.end(place.at);
        upload.end();
        let words = D::place_of(self.shared, place);
        let value = value_in(words, &upload);
        let mut executing = Executing {
            draft: Some(Draft::at(place, upload.keyhash(), value.bytes())),
            writer: self,
        };
        execute(&mut executing, value.bytes());
        if let Some(draft) = executing.draft.take() {
            D::abandon(self, draft.place);
        }
    }
}

/// The value of an upload that is complete.
enum Value<'a> {
    InPlace(&'a [u8]),
    /// Where words do not lie in memory as bytes do.
    Copied(Vec<u8>),
}

impl Value<'_> {
    fn bytes(&self) -> &[u8] {
        match self {
            Value::InPlace(bytes) => bytes,
            Value::Copied(bytes) => bytes,
        }
    }
}

fn value_in<'a>(place: Words<'a>, upload: &Upload) -> Value<'a> {
    // Miri has words stored as a whole, with bytes of the value that do not change.
    match bytes_in_place(place, upload.value_at(), upload.bytes()).filter(|_| !cfg!(miri)) {
        // SAFETY: the bytes lie in the place, which lives as long as its words. The receiver is
        // here, so it stores nothing. The place is reserved, and while the result is in use nothing
        // is stored that needs room (`Executing`), so no writer stores to these bytes.
        Some(bytes) => Value::InPlace(unsafe { bytes.as_ref() }),
        None => {
            let mut copy = Vec::new();
            upload.copy_to(0..upload.bytes(), &mut copy);
            Value::Copied(copy)
        }
    }
}

/// A writer that executes a request whose value is at the place of an upload. The place stays as it
/// is meanwhile: it becomes the item, or nothing is stored that needs room.
struct Executing<'w, 'a, D: Design> {
    writer: &'w mut Writer<'a, D>,
    draft: Option<Draft>,
}

impl<D: Design> TableWriter for Executing<'_, '_, D> {
    fn bring(&mut self, draft: Option<Draft>) {
        self.writer.bring(draft);
    }

    fn with_upload(
        &mut self,
        upload: Upload,
        _execute: &mut dyn FnMut(&mut dyn TableWriter, &[u8]),
    ) {
        drop(upload);
        unreachable!("a request has one value");
    }

    fn cas_sequence(&mut self) -> &mut CasSequence {
        self.writer.cas_sequence()
    }

    fn find(&self, keyhash: Keyhash, key: &[u8], now: Moment) -> Option<Item<'_>> {
        self.writer.find(keyhash, key, now)
    }

    /// No read moves the item.
    fn read<T>(
        &mut self,
        keyhash: Keyhash,
        key: &[u8],
        now: Moment,
        take: impl FnOnce(&Item<'_>) -> T,
    ) -> Option<T> {
        let shared = self.writer.shared;
        let Some(found) = self.writer.lookup(keyhash, key, now) else {
            shared.was_missed(keyhash, now);
            return None;
        };
        let taken = take(&found.item);
        note_read::<D>(shared, found.cell, found.entry);
        shared.was_hit(keyhash, found.entry, now);
        Some(taken)
    }

    fn show(&mut self, keyhash: Keyhash, key: &[u8], now: Moment, take: &mut dyn FnMut(&Item<'_>)) {
        self.read(keyhash, key, now, take);
    }

    fn put(&mut self, keyhash: Keyhash, item: &NewItem<'_>, now: Moment) -> Stored {
        let birth = self.writer.shared.common.birth_of(item.key);
        let put = match (Put::of(item, keyhash, now), birth) {
            (put, 0) => put,
            (put, birth) => put.born(birth),
        };
        if put.words > self.writer.shared.heap.item_words_max() {
            return Stored::TooLarge;
        }
        let Some(draft) = self.draft.take_if(|draft| draft.is_of(&put)) else {
            return Stored::OutOfMemory;
        };
        let store =
            |writer: &mut Writer<'_, D>, put: &Put<'_>| D::store_drafted(writer, put, draft);
        let stored = self.writer.store(put, store);
        stored.unwrap_or(Stored::OutOfMemory)
    }

    fn remove(&mut self, keyhash: Keyhash, key: &[u8], now: Moment) -> bool {
        self.writer.remove(keyhash, key, now)
    }

    fn touch(&mut self, keyhash: Keyhash, key: &[u8], expiry: Expiry, now: Moment) -> bool {
        self.writer
            .change_if_in_place(keyhash, key, (expiry, None), now)
    }

    fn extend(&mut self, keyhash: Keyhash, item: &NewItem<'_>, now: Moment) -> Option<Stored> {
        self.find(keyhash, item.key, now)?;
        Some(Stored::OutOfMemory)
    }

    fn amend(
        &mut self,
        keyhash: Keyhash,
        key: &[u8],
        expiry: Expiry,
        history: History,
        now: Moment,
    ) -> bool {
        let change = (expiry, Some(history));
        self.writer.change_if_in_place(keyhash, key, change, now)
    }

    fn list(
        &self,
        chain: usize,
        now: Moment,
        visit: &mut dyn FnMut(&Item<'_>, bool),
    ) -> Option<usize> {
        self.writer.list(chain, now, visit)
    }

    fn expire(&mut self, chain: usize, now: Moment) -> (u64, Option<usize>) {
        self.writer.expire(chain, now)
    }

    fn begin_sweep(&mut self) -> u64 {
        self.writer.begin_sweep()
    }

    fn has_swept(&mut self, name: u64) -> bool {
        self.writer.has_swept(name)
    }

    fn absence(&self, keyhash: Keyhash, key: &[u8]) -> Absence {
        self.writer.absence(keyhash, key)
    }

    fn stored_s(&self, keyhash: Keyhash, key: &[u8], now: Moment) -> Option<u32> {
        self.writer.stored_s(keyhash, key, now)
    }

    fn was_read(&self, keyhash: Keyhash, key: &[u8], now: Moment) -> bool {
        self.writer.was_read(keyhash, key, now)
    }
}
