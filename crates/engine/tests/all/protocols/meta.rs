//! The meta commands (protocol.txt, "Meta Debug" to "Meta No-Op").

use super::{check, servers, shown};

/// Replaces numbers that depend on the store (CAS uniques) by the letter C.
fn without_uniques(reply: &[u8]) -> String {
    let text = String::from_utf8(reply.to_vec()).unwrap();
    let words = text.split_inclusive([' ', '\n']);
    let mut out = String::new();
    for word in words {
        let is_unique = word.starts_with('c')
            && word.trim_end()[1..]
                .bytes()
                .all(|byte| byte.is_ascii_digit())
            && word.trim_end().len() > 1;
        if is_unique {
            out.push('C');
            out.push_str(&word[word.trim_end().len()..]);
        } else {
            out.push_str(word);
        }
    }
    out
}

#[track_caller]
fn check_but_uniques(rows: &[(&str, &str)]) {
    for (mode, mut server) in servers().into_iter().enumerate() {
        for (said, reply) in rows {
            let got = without_uniques(&server.say(said.as_bytes()));
            assert_eq!(got, *reply, "mode {mode}, to {said:?}");
        }
    }
}

/// The CAS unique of `key`.
fn unique(server: &mut super::Server, key: &str) -> u64 {
    let reply = server.say(format!("mg {key} c\r\n").as_bytes());
    let text = String::from_utf8(reply).unwrap();
    text.trim().strip_prefix("HD c").unwrap().parse().unwrap()
}

#[test]
fn mg_reads() {
    check(&[
        (b"mg k v\r\n", b"EN\r\n"),
        (b"mg k v q\r\nmn\r\n", b"MN\r\n"),
        (b"mg k O7 k q\r\nmg k k O7\r\n", b"EN kk O7\r\n"),
        (b"ms k 5 F42 T90\r\nhello\r\n", b"HD\r\n"),
        (b"mg k\r\n", b"HD\r\n"),
        (b"mg k v\r\n", b"VA 5\r\nhello\r\n"),
        (b"mg k q\r\n", b"HD\r\n"),
        // "They are added in order specified by the flags sent."
        (
            b"mg k s t f O7 k v\r\n",
            b"VA 5 s5 t90 f42 O7 kk\r\nhello\r\n",
        ),
        (
            b"mg k v k O7 f t s\r\n",
            b"VA 5 kk O7 f42 t90 s5\r\nhello\r\n",
        ),
        (b"mg k P1 L2 v\r\n", b"VA 5\r\nhello\r\n"),
        (b"get k\r\n", b"VALUE k 42 5\r\nhello\r\nEND\r\n"),
        (
            b"set never 0 0 0\r\n\r\nmg never t s v\r\n",
            b"STORED\r\nVA 0 t-1 s0\r\n\r\n",
        ),
    ]);
}

#[test]
fn mg_tells_whether_and_when_an_item_was_read() {
    for mut server in servers() {
        server.say(b"ms k 1\r\nx\r\n");
        assert_eq!(
            server.say(b"mg k h u\r\n"),
            b"HD h0\r\n",
            "u leaves no trace"
        );
        assert_eq!(server.say(b"mg k h l\r\n"), b"HD h0 l0\r\n");
        assert_eq!(server.say(b"mg k h u\r\n"), b"HD h1\r\n");
        server.wait(7);
        assert_eq!(server.say(b"mg k l u\r\n"), b"HD l7\r\n");
        assert_eq!(server.say(b"mg k l\r\n"), b"HD l7\r\n", "as it was before");
        assert_eq!(server.say(b"mg k l\r\n"), b"HD l0\r\n");
        server.wait(2);
        assert_eq!(server.say(b"mg k v\r\n"), b"VA 1\r\nx\r\n");
        assert_eq!(
            server.say(b"mg k l u\r\n"),
            b"HD l0\r\n",
            "any meta read counts"
        );
        assert_eq!(
            server.say(b"ms k 1\r\ny\r\nmg k v\r\n"),
            b"HD\r\nVA 1\r\ny\r\n"
        );
    }
}

#[test]
fn mg_touches_in_the_order_of_its_flags() {
    for mut server in servers() {
        server.say(b"ms k 1 T100\r\nx\r\n");
        assert_eq!(server.say(b"mg k t T30\r\n"), b"HD t100\r\n");
        assert_eq!(server.say(b"mg k T60 t\r\n"), b"HD t60\r\n");
        server.wait(59);
        assert_eq!(server.say(b"mg k t\r\n"), b"HD t1\r\n");
        assert_eq!(server.say(b"mg k T0 t v\r\n"), b"VA 1 t-1\r\nx\r\n");
        server.wait(1_000);
        assert_eq!(
            server.say(b"mg k T-1 v\r\nmg k v\r\n"),
            b"VA 1\r\nx\r\nEN\r\n"
        );
        assert_eq!(server.say(b"mg k T30 k\r\n"), b"EN kk\r\n");
    }
}

#[test]
fn mg_makes_an_item_that_one_client_is_to_fill() {
    check_but_uniques(&[
        ("mg k N30 s v t c\r\n", "VA 0 s0 t30 C W\r\n\r\n"),
        ("mg k N30 s v t c\r\n", "VA 0 s0 t30 C Z\r\n\r\n"),
        ("mg k s v\r\n", "VA 0 s0 Z\r\n\r\n"),
        ("ms k 3\r\nnew\r\n", "HD\r\n"),
        ("mg k N30 s v t\r\n", "VA 3 s3 t-1\r\nnew\r\n"),
        ("mg i t N30 c\r\n", "HD t-1 C W\r\n"),
        ("mg j N30 t T60\r\n", "HD t30 W\r\n"),
        ("mg j t\r\n", "HD t60 Z\r\n"),
    ]);
    for mut server in servers() {
        assert_eq!(server.say(b"mg k N30 E77 c\r\n"), b"HD c77 W\r\n");
        assert_eq!(
            server.say(b"mg k E78 T9 c\r\n"),
            b"HD c77 Z\r\n",
            "E is for new items"
        );
    }
}

#[test]
fn mg_lets_one_client_make_the_value_anew_in_time() {
    check_but_uniques(&[
        ("ms k 1 T100\r\nx\r\n", "HD\r\n"),
        ("mg k R30 v t\r\n", "VA 1 t100\r\nx\r\n"),
        ("mg k R200 v t\r\n", "VA 1 t100 W\r\nx\r\n"),
        ("mg k R200 v t\r\n", "VA 1 t100 Z\r\nx\r\n"),
        ("mg k v\r\n", "VA 1 Z\r\nx\r\n"),
        ("ms k 1 T0\r\ny\r\n", "HD\r\n"),
        ("mg k R200 v\r\n", "VA 1\r\ny\r\n"),
    ]);
}

/// Part of a second has gone, and the time that is left is still shown as it was set.
#[test]
fn mg_compares_the_time_that_it_shows() {
    for mut server in servers() {
        server.say(b"ms k 1 T100\r\nx\r\n");
        server.now.ms += 10;
        assert_eq!(server.say(b"mg k t R100\r\n"), b"HD t100\r\n");
        assert_eq!(server.say(b"mg k t R99990 m\r\n"), b"HD t99990\r\n");
        assert_eq!(server.say(b"mg k t R101\r\n"), b"HD t100 W\r\n");
        server.say(b"ms k 1 T100\r\nx\r\n");
        assert_eq!(server.say(b"mg k t R100001 m\r\n"), b"HD t100000 W\r\n");
    }
}

#[test]
fn md_marks_as_stale() {
    for mut server in servers() {
        server.say(b"ms k 3 F5 T100\r\nold\r\n");
        let before = unique(&mut server, "k");
        assert_eq!(server.say(b"md k I T30\r\n"), b"HD\r\n");
        let reply = without_uniques(&server.say(b"mg k v c t f\r\n"));
        assert_eq!(reply, "VA 3 C t30 f5 X W\r\nold\r\n");
        let reply = without_uniques(&server.say(b"mg k v c\r\n"));
        assert_eq!(reply, "VA 3 C Z X\r\nold\r\n");
        assert_eq!(server.say(b"get k\r\n"), b"VALUE k 5 3\r\nold\r\nEND\r\n");
        // "a CAS value that is _lower_ than the current value may be accepted, but the item will be
        // marked as stale"
        let stale = format!("ms k 3 I C{before}\r\nmid\r\nmg k v t\r\n");
        assert_eq!(
            shown(&server.say(stale.as_bytes())),
            "HD\\r\\nVA 3 t30 Z X\\r\\nmid\\r\\n"
        );
        let low = format!("ms k 3 C{before}\r\nbad\r\n");
        assert_eq!(server.say(low.as_bytes()), b"EX\r\n");
        let mut now = 0;
        for word in String::from_utf8(server.say(b"mg k c\r\n"))
            .unwrap()
            .split(' ')
        {
            now = word
                .strip_prefix('c')
                .and_then(|n| n.parse().ok())
                .unwrap_or(now);
        }
        let good = format!("ms k 3 C{now} T200\r\nnew\r\nmg k v t\r\n");
        assert_eq!(
            shown(&server.say(good.as_bytes())),
            "HD\\r\\nVA 3 t200\\r\\nnew\\r\\n"
        );
    }
}

#[test]
fn md_removes_and_empties() {
    check_but_uniques(&[
        ("md k\r\n", "NF\r\n"),
        ("md k q k O1\r\n", "NF kk O1\r\n"),
        ("ms k 2 F9 T50\r\nhi\r\nmd k C1000000\r\n", "HD\r\nEX\r\n"),
        ("md k q\r\nmn\r\nmg k v\r\n", "MN\r\nEN\r\n"),
        (
            "ms k 2 F9 T50 E1234\r\nhi\r\nmd k C1234 k O1\r\n",
            "HD\r\nHD kk O1\r\n",
        ),
        // "x: removes the item value, but leaves the item"
        (
            "ms k 2 F9 T50\r\nhi\r\nmd k x\r\nmg k v f t s\r\n",
            "HD\r\nHD\r\nVA 0 f0 t-1 s0\r\n\r\n",
        ),
        (
            "ms k 2 F9 T50\r\nhi\r\nmd k I x T20\r\nmg k v f t\r\n",
            "HD\r\nHD\r\nVA 0 f0 t20 X W\r\n\r\n",
        ),
    ]);
    for mut server in servers() {
        server.say(b"ms k 2 E555\r\nhi\r\n");
        assert_eq!(server.say(b"md k x\r\nmg k c\r\n"), b"HD\r\nHD c555\r\n");
        assert_eq!(
            server.say(b"md k I E900\r\nmg k c\r\n"),
            b"HD\r\nHD c900 X W\r\n"
        );
    }
}

#[test]
fn ms_modes() {
    check_but_uniques(&[
        ("ms k 2 ME k O1\r\nhi\r\n", "HD kk O1\r\n"),
        ("ms k 2 ME\r\nho\r\n", "NS\r\n"),
        ("ms k 2 MA s c\r\nyo\r\n", "HD s4 C\r\n"),
        ("ms k 1 MP s\r\n!\r\n", "HD s5\r\n"),
        ("mg k v\r\n", "VA 5\r\n!hiyo\r\n"),
        ("ms k 2 MR\r\nhi\r\n", "HD\r\n"),
        ("ms k 2 MS\r\nho\r\n", "HD\r\n"),
        ("ms none 2 MR k\r\nhi\r\n", "NS knone\r\n"),
        ("ms none 2 MA q\r\nhi\r\n", "NS\r\n"),
        ("ms none 2 MP c s\r\nhi\r\n", "NS C s2\r\n"),
        (
            "ms a 2 MA N60\r\nhi\r\nms a 2 MA N90\r\nyo\r\nmg a v t\r\n",
            "HD\r\nHD\r\nVA 4 t60\r\nhiyo\r\n",
        ),
        ("ms k 2 q\r\nhi\r\nmn\r\n", "MN\r\n"),
        (
            "ms k 2 MX\r\nhi\r\n",
            "CLIENT_ERROR invalid mode for ms M token\r\n",
        ),
        ("ms k 0\r\n\r\nmg k v s\r\n", "HD\r\nVA 0 s0\r\n\r\n"),
    ]);
}

#[test]
fn ms_compares() {
    for mut server in servers() {
        assert_eq!(server.say(b"ms k 2 C5\r\nhi\r\n"), b"NF\r\n");
        assert_eq!(server.say(b"ms k 2 E5\r\nhi\r\n"), b"HD\r\n");
        assert_eq!(server.say(b"ms k 2 C4 c\r\nhi\r\n"), b"EX c0\r\n");
        assert_eq!(
            server.say(b"ms k 2 C0\r\nhi\r\n"),
            b"EX\r\n",
            "zero is nobody's"
        );
        assert_eq!(
            server.say(b"ms k 2 C5 E18446744073709551615 c\r\nho\r\n"),
            b"HD c18446744073709551615\r\n"
        );
        assert_eq!(
            server.say(b"mg k c v\r\n"),
            b"VA 2 c18446744073709551615\r\nho\r\n"
        );
        assert_eq!(
            server.say(b"gets k\r\n"),
            b"VALUE k 0 2 18446744073709551615\r\nho\r\nEND\r\n"
        );
        assert_eq!(server.say(b"ms k 2 MA C1\r\nhi\r\n"), b"EX\r\n");
        assert_eq!(
            server.say(b"ms k 2 MA C18446744073709551615 E7 c\r\nhi\r\n"),
            b"HD c7\r\n"
        );
        assert_eq!(
            server.say(b"ms k 2 MR C7 E8\r\nhi\r\nms k 2 ME C8\r\nxx\r\n"),
            b"HD\r\nNS\r\n"
        );
        assert_eq!(server.say(b"mg k v c\r\n"), b"VA 2 c8\r\nhi\r\n");
    }
}

#[test]
fn mg_sends_no_value_that_the_client_has() {
    check(&[
        (b"ms a 1 E50\r\nx\r\n", b"HD\r\n"),
        (b"mg a C50 v c\r\n", b"HD c50\r\n"),
        (b"mg a C51 v c\r\n", b"VA 1 c50\r\nx\r\n"),
        (b"mg a C50 v l\r\n", b"HD l0\r\n"),
    ]);
}

#[test]
fn ms_errors_are_said_and_their_values_swallowed() {
    let long_key = "k".repeat(251);
    let rows: &[(String, &str)] = &[
        (
            "ms k\r\n".into(),
            "CLIENT_ERROR bad command line format\r\n",
        ),
        (
            "ms k x\r\n".into(),
            "CLIENT_ERROR bad command line format\r\n",
        ),
        (
            "ms k 2 c c\r\nhi\r\n".into(),
            "CLIENT_ERROR duplicate flag\r\n",
        ),
        (
            "ms k 2 Tx\r\nhi\r\n".into(),
            "CLIENT_ERROR bad token in command line format\r\n",
        ),
        (
            "ms k 2 S2\r\nhi\r\n".into(),
            "CLIENT_ERROR invalid flag\r\n",
        ),
        (
            "ms k 2 b q\r\nhi\r\n".into(),
            "CLIENT_ERROR error decoding key\r\n",
        ),
        (
            format!("ms {long_key} 2\r\nhi\r\n"),
            "CLIENT_ERROR bad command line format\r\n",
        ),
        (
            format!("ms k 2 O{}\r\nhi\r\n", "1".repeat(32)),
            "CLIENT_ERROR opaque token too long\r\n",
        ),
        ("ms k 2 q\r\nhixx".into(), "CLIENT_ERROR bad data chunk\r\n"),
    ];
    for mut server in servers() {
        for (said, reply) in rows {
            assert_eq!(
                shown(&server.say(said.as_bytes())),
                shown(reply.as_bytes()),
                "to {said:?}"
            );
            assert_eq!(server.say(b"mn\r\n"), b"MN\r\n", "after {said:?}");
        }
        let opaque = "1".repeat(31);
        let longest = format!("ms k 2 O{opaque}\r\nhi\r\n");
        assert_eq!(
            server.say(longest.as_bytes()),
            format!("HD O{opaque}\r\n").as_bytes()
        );
        // A value that is too large also deletes the old one.
        let mut large = b"ms k 1048577\r\n".to_vec();
        large.resize(large.len() + 1_048_577, b'x');
        large.extend_from_slice(b"\r\nmg k v\r\n");
        assert_eq!(
            shown(&server.say(&large)),
            "SERVER_ERROR object too large for cache\\r\\nEN\\r\\n"
        );
    }
}

#[test]
fn ma_counts() {
    check_but_uniques(&[
        ("ma n\r\n", "NF\r\n"),
        ("ma n q k O1\r\n", "NF kn O1\r\n"),
        ("ma n N60 J13 v t c\r\n", "VA 2 t60 C\r\n13\r\n"),
        ("ma n v\r\n", "VA 2\r\n14\r\n"),
        ("ma n D5 v t T20\r\n", "VA 2 t60\r\n19\r\n"),
        ("ma n MD v t\r\n", "VA 2 t20\r\n18\r\n"),
        ("ma n M- D100 v\r\n", "VA 1\r\n0\r\n"),
        ("mg n v\r\n", "VA 2\r\n0 \r\n"),
        (
            "ma n M+ D18446744073709551615 v\r\n",
            "VA 20\r\n18446744073709551615\r\n",
        ),
        ("ma n MI v k O1\r\n", "VA 1 kn O1\r\n0\r\n"),
        ("ma n q\r\nmn\r\n", "MN\r\n"),
        ("ma n C99999\r\n", "EX\r\n"),
        ("ma n E99 c\r\nma n C99 c E100\r\n", "HD C\r\nHD C\r\n"),
        ("mg n c\r\n", "HD C\r\n"),
        (
            "ms x 3\r\nabc\r\nma x q\r\n",
            "HD\r\nCLIENT_ERROR cannot increment or decrement non-numeric value\r\n",
        ),
        (
            "ma n Mx\r\n",
            "CLIENT_ERROR invalid mode for ma M token\r\n",
        ),
        ("ma n Dx\r\n", "CLIENT_ERROR invalid or duplicate flag\r\n"),
        ("ma m N0 E5 q\r\nma m c C5\r\n", "HD C\r\n"),
    ]);
}

/// With `m`, every time counts milliseconds, wherever in the line it is.
#[test]
fn times_in_milliseconds() {
    check_but_uniques(&[
        ("ms k 1 T1500 m\r\nx\r\n", "HD\r\n"),
        (
            "mg k t\r\nmg k t m\r\nmg k m t v\r\n",
            "HD t2\r\nHD t1500\r\nVA 1 t1500\r\nx\r\n",
        ),
        (
            "mg k t T250 m\r\nmg k T250 t m\r\nmg k t\r\n",
            "HD t1500\r\nHD t250\r\nHD t1\r\n",
        ),
        ("mg k R250 m\r\nmg k R251 m\r\n", "HD\r\nHD W\r\n"),
        ("mg n N70 m t\r\nmg n m t\r\n", "HD t70 W\r\nHD t70 Z\r\n"),
        ("ma a N70 m t\r\nma a T9 t m\r\n", "HD t70\r\nHD t9\r\n"),
        ("ms a 1 MA T1 m\r\n0\r\nmg a m t\r\n", "HD\r\nHD t9\r\n"),
        (
            "ms b 1 MA N7 m\r\n0\r\nmg b m t v\r\n",
            "HD\r\nVA 1 t7\r\n0\r\n",
        ),
        ("md b I T3 m\r\nmg b m t\r\n", "HD\r\nHD t3 X W\r\n"),
        (
            "mg k T2592000000 m t\r\nmg k t\r\n",
            "HD t2592000000 Z\r\nHD t2592000 Z\r\n",
        ),
        ("mg k m T1700000010777 t\r\n", "HD t777 Z\r\n"),
        ("mg k m T0 t\r\nmg k T5 t\r\n", "HD t-1 Z\r\nHD t5 Z\r\n"),
        (
            "mg k T1700000010777 t\r\n",
            "CLIENT_ERROR bad token in command line format\r\n",
        ),
        ("mg k T-1 m\r\nmg k t\r\n", "HD Z\r\nEN\r\n"),
        ("ms k 1 T-2000 m\r\nx\r\nmg k t\r\n", "HD\r\nEN\r\n"),
    ]);
}

#[test]
fn keys_in_base64() {
    check(&[
        (b"ms Zm9v 2 b k\r\nhi\r\n", b"HD kZm9v b\r\n"),
        (b"mg Zm9v b k v\r\n", b"VA 2 kZm9v b\r\nhi\r\n"),
        // The key is shown as given when the item was stored, not as in the request.
        (b"mg foo k v\r\n", b"VA 2 kZm9v b\r\nhi\r\n"),
        (b"get foo\r\n", b"VALUE foo 0 2\r\nhi\r\nEND\r\n"),
        (
            b"set foo 0 0 1\r\nx\r\nmg Zm9v b k\r\n",
            b"STORED\r\nHD kfoo\r\n",
        ),
        (
            b"ms AAECIAo= 1 b\r\nx\r\nmg AAECIAo= k b v O1\r\n",
            b"HD\r\nVA 1 kAAECIAo= b O1\r\nx\r\n",
        ),
        (
            b"ma AAAA b N0 J5 v k\r\nma AAAA v b\r\n",
            b"VA 1 kAAAA b\r\n5\r\nVA 1\r\n6\r\n",
        ),
        (
            b"md AAAA b k\r\nmg AAAA b k\r\n",
            b"HD kAAAA b\r\nEN kAAAA b\r\n",
        ),
        (
            b"mg AAAA b N0 k\r\nmg AAAA b k\r\n",
            b"HD kAAAA b W\r\nHD kAAAA b Z\r\n",
        ),
        (b"mg foo b v\r\n", b"CLIENT_ERROR error decoding key\r\n"),
    ]);
}

#[test]
fn me_tells_all() {
    for mut server in servers() {
        assert_eq!(server.say(b"me k\r\n"), b"EN\r\n");
        server.say(b"ms k 2 T100 E77\r\nhi\r\n");
        assert_eq!(
            shown(&server.say(b"me k\r\n")),
            "ME k exp=100 la=0 cas=77 fetch=no cls=1 size=16\\r\\n"
        );
        server.say(b"ms Zm9v 2 b E9\r\nhi\r\nmg Zm9v b l\r\n");
        server.wait(3);
        assert_eq!(
            shown(&server.say(b"me foo\r\nme Zm9v b\r\n")),
            "ME Zm9v exp=-1 la=3 cas=9 fetch=yes cls=1 size=24\\r\\n".repeat(2)
        );
        assert_eq!(
            server.say(b"me\r\n"),
            b"CLIENT_ERROR bad command line format\r\n"
        );
    }
}

#[test]
fn marks_outlive_what_does_not_replace_the_value() {
    for mut server in servers() {
        server.say(b"ms n 1\r\n5\r\nmd n I\r\n");
        server.say(b"touch n 100\r\nincr n 1\r\n");
        let reply = without_uniques(&server.say(b"mg n v t\r\n"));
        assert_eq!(reply, "VA 1 t100 X W\r\n6\r\n");
        // Memcached rewrites an item that grows, which resets its state.
        server.say(b"incr n 10\r\n");
        assert_eq!(server.say(b"mg n v\r\n"), b"VA 2\r\n16\r\n");
    }
}
