//! The paper's operations, one rule after the other (§IV-A2, §VI-A).

use super::{Make, keys};
use crate::device::{COUNT_MAX, DeviceError, Mode};
use crate::models::LookUp;

pub(super) fn all(make: Make<'_>) {
    let rules: [fn(&mut dyn LookUp, &Keys); 9] = [
        an_empty_slot_is_taken_the_primary_one_first,
        a_key_keeps_its_slot,
        the_lower_count_gives_way,
        equal_counts_give_the_primary_slot_away,
        equal_choices_leave_one_slot,
        counts_stay_at_their_bound,
        reset_sets_all_counts_to_zero,
        a_deleted_key_is_gone,
        modes_and_wrong_arguments,
    ];
    let keys = Keys::of(&*make());
    for rule in rules {
        let mut device = make();
        device.switch_mode(Mode::Write);
        rule(&mut *device, &keys);
    }
}

/// Keys whose places are known. It takes a while to find them.
struct Keys {
    /// Two places that differ, and keys that have exactly these.
    places: [usize; 2],
    rivals: Vec<Vec<u8>>,
    /// A place that is both the primary and the secondary one of two keys.
    twin_place: usize,
    twins: Vec<Vec<u8>>,
}

impl Keys {
    fn of(device: &dyn LookUp) -> Keys {
        let first = keys(device, 1, |[primary, secondary]| primary != secondary);
        let places = device.places(&first[0]);
        let first = keys(device, 1, |[primary, secondary]| primary == secondary);
        let twin_places = device.places(&first[0]);
        Keys {
            places,
            rivals: keys(device, 5, |theirs| theirs == places),
            twin_place: twin_places[0],
            twins: keys(device, 2, |theirs| theirs == twin_places),
        }
    }
}

/// Writes a value into a slot, which nothing else has.
fn write(device: &mut dyn LookUp, slot: usize, value: &[u8]) {
    device.associate_address(slot, 0).unwrap();
    device.associate_length(slot, value.len()).unwrap();
    device.write_value(slot, value).unwrap();
}

fn look_up(device: &mut dyn LookUp, key: &[u8]) -> Option<Vec<u8>> {
    device.switch_mode(Mode::Read);
    let value = device.look_up(key);
    device.switch_mode(Mode::Write);
    value
}

fn an_empty_slot_is_taken_the_primary_one_first(device: &mut dyn LookUp, known: &Keys) {
    let ([primary, secondary], keys) = (known.places, &known.rivals);
    assert_eq!(device.reserve(&keys[0], 1), Ok(Some(primary)));
    // Empty comes before light, whatever the weight.
    assert_eq!(device.reserve(&keys[1], COUNT_MAX), Ok(Some(secondary)));
    assert_eq!(device.delete(&keys[0]), Ok(Some(primary)));
    assert_eq!(device.reserve(&keys[2], 0), Ok(Some(primary)));
}

fn a_key_keeps_its_slot(device: &mut dyn LookUp, known: &Keys) {
    let ([primary, secondary], keys) = (known.places, &known.rivals);
    device.reserve(&keys[0], 1).unwrap();
    device.reserve(&keys[1], 1).unwrap();
    assert_eq!(device.reserve(&keys[0], 0), Ok(Some(primary)));
    // Its own slot comes before an empty one: otherwise the key would be there twice.
    device.delete(&keys[0]).unwrap();
    assert_eq!(device.reserve(&keys[1], COUNT_MAX), Ok(Some(secondary)));
    device.delete(&keys[1]).unwrap();
    assert_eq!(device.delete(&keys[1]), Ok(None));
}

fn the_lower_count_gives_way(device: &mut dyn LookUp, known: &Keys) {
    let ([primary, secondary], keys) = (known.places, &known.rivals);
    device.reserve(&keys[0], 20).unwrap();
    device.reserve(&keys[1], 10).unwrap();
    assert_eq!(
        device.reserve(&keys[2], 10),
        Ok(None),
        "an equal weight is not enough"
    );
    assert_eq!(device.reserve(&keys[2], 11), Ok(Some(secondary)));
    assert_eq!(device.delete(&keys[1]), Ok(None), "the lighter key is gone");
    assert_eq!(device.reserve(&keys[3], 12), Ok(Some(secondary)));
    assert_eq!(device.reserve(&keys[4], 13), Ok(Some(secondary)));
    assert_eq!(device.delete(&keys[0]), Ok(Some(primary)));
}

fn equal_counts_give_the_primary_slot_away(device: &mut dyn LookUp, known: &Keys) {
    let ([primary, _], keys) = (known.places, &known.rivals);
    device.reserve(&keys[0], 10).unwrap();
    device.reserve(&keys[1], 10).unwrap();
    assert_eq!(device.reserve(&keys[2], 11), Ok(Some(primary)));
}

fn equal_choices_leave_one_slot(device: &mut dyn LookUp, known: &Keys) {
    let (place, keys) = (known.twin_place, &known.twins);
    assert_eq!(device.reserve(&keys[0], 5), Ok(Some(place)));
    assert_eq!(device.reserve(&keys[1], 5), Ok(None));
    assert_eq!(device.reserve(&keys[1], 6), Ok(Some(place)));
    assert_eq!(device.delete(&keys[0]), Ok(None));
    assert_eq!(device.delete(&keys[1]), Ok(Some(place)));
}

fn counts_stay_at_their_bound(device: &mut dyn LookUp, known: &Keys) {
    let ([primary, secondary], keys) = (known.places, &known.rivals);
    device.reserve(&keys[0], 0).unwrap();
    device.reserve(&keys[1], COUNT_MAX).unwrap();
    write(device, primary, b"value");
    device.switch_mode(Mode::Read);
    for hits in 1..=2 * COUNT_MAX {
        assert_eq!(device.look_up(&keys[0]).as_deref(), Some(&b"value"[..]));
        if device.capabilities().has_readable_counts {
            assert_eq!(device.count(primary), Some(hits.min(COUNT_MAX)));
            assert_eq!(device.count(secondary), Some(COUNT_MAX));
        }
    }
    device.switch_mode(Mode::Write);
    assert_eq!(device.reserve(&keys[2], COUNT_MAX), Ok(None));
}

fn reset_sets_all_counts_to_zero(device: &mut dyn LookUp, known: &Keys) {
    let ([primary, secondary], keys) = (known.places, &known.rivals);
    device.reserve(&keys[0], COUNT_MAX).unwrap();
    device.reserve(&keys[1], 7).unwrap();
    device.reset_counts().unwrap();
    if device.capabilities().has_readable_counts {
        assert_eq!(
            [primary, secondary].map(|slot| device.count(slot)),
            [Some(0); 2]
        );
    }
    assert_eq!(device.reserve(&keys[2], 0), Ok(None));
    assert_eq!(device.reserve(&keys[2], 1), Ok(Some(primary)));
    assert_eq!(device.reserve(&keys[3], 1), Ok(Some(secondary)));
}

fn a_deleted_key_is_gone(device: &mut dyn LookUp, known: &Keys) {
    let ([primary, _], keys) = (known.places, &known.rivals);
    assert_eq!(device.delete(&keys[0]), Ok(None));
    device.reserve(&keys[0], 1).unwrap();
    assert_eq!(look_up(device, &keys[0]), None, "no value has been written");
    write(device, primary, b"one");
    assert_eq!(look_up(device, &keys[0]).as_deref(), Some(&b"one"[..]));
    assert_eq!(look_up(device, &keys[1]), None);
    write(device, primary, b"another one");
    assert_eq!(
        look_up(device, &keys[0]).as_deref(),
        Some(&b"another one"[..])
    );
    assert_eq!(device.delete(&keys[0]), Ok(Some(primary)));
    assert_eq!(look_up(device, &keys[0]), None);
    assert_eq!(device.delete(&keys[0]), Ok(None));
}

fn modes_and_wrong_arguments(device: &mut dyn LookUp, known: &Keys) {
    let ([primary, _], keys) = (known.places, &known.rivals);
    let capabilities = device.capabilities();
    let long = vec![b'k'; capabilities.key_bytes_max + 1];
    for wrong in [&b""[..], &long] {
        assert_eq!(device.delete(wrong), Err(DeviceError::Key));
        assert_eq!(device.reserve(wrong, 1), Err(DeviceError::Key));
    }
    for slot in [primary, capabilities.slots, usize::MAX] {
        assert_eq!(device.associate_address(slot, 0), Err(DeviceError::Slot));
        assert_eq!(device.associate_length(slot, 1), Err(DeviceError::Slot));
        assert_eq!(device.write_value(slot, b"v"), Err(DeviceError::Slot));
    }
    device.reserve(&keys[0], 1).unwrap();
    device
        .associate_length(primary, capabilities.value_bytes_max + 1)
        .unwrap();
    let memory = vec![0; capabilities.value_bytes_max + 1];
    assert_eq!(
        device.write_value(primary, &memory),
        Err(DeviceError::Value)
    );
    write(device, primary, b"v");
    if !capabilities.has_write_mode {
        return;
    }
    assert_eq!(
        device.look_up(&keys[0]),
        None,
        "nothing is answered in write mode"
    );
    device.switch_mode(Mode::Read);
    assert_eq!(device.look_up(&keys[0]).as_deref(), Some(&b"v"[..]));
    assert_eq!(device.delete(&keys[0]), Err(DeviceError::ReadMode));
    assert_eq!(device.reserve(&keys[0], 1), Err(DeviceError::ReadMode));
    assert_eq!(
        device.associate_address(primary, 0),
        Err(DeviceError::ReadMode)
    );
    assert_eq!(
        device.associate_length(primary, 1),
        Err(DeviceError::ReadMode)
    );
    assert_eq!(
        device.write_value(primary, b"w"),
        Err(DeviceError::ReadMode)
    );
    assert_eq!(device.reset_counts(), Err(DeviceError::ReadMode));
    assert_eq!(device.look_up(&keys[0]).as_deref(), Some(&b"v"[..]));
}
