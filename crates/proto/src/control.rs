//! Commands without a key that several protocols have. The server carries them out, and the
//! protocol that they came by says what became of them.

use crate::Sum;
use crate::denial::Denial;
use crate::sections::Sections;

/// A command without a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control<'a> {
    /// The parser knows the answer, which repeats these bytes of the command.
    Answered(&'a [u8]),
    /// Make every item older than a moment invisible.
    Flush {
        /// The moment as memcached's expiry time; zero is now.
        exptime: i64,
    },
    /// Show figures: the general ones, or those of this name.
    Stats(&'a [u8]),
    /// Show these figures in the words of the protocol that asks.
    Info(Sections),
    /// Say how many items there are.
    Size,
    /// Say what time it is.
    Time,
    /// Show the connections.
    Clients,
    /// Show keys.
    Scan(Scan<'a>),
    /// Show any key.
    RandomKey,
    /// Give an item another key.
    Move(Move<'a>),
    /// Send what is waiting, then close.
    Quit,
    /// Say what the parts of the command come to that were executed as requests.
    Sum,
    /// Say a number that no other open connection has.
    ConnectionId,
    /// Say by which mechanism clients authenticate.
    Mechanisms,
    /// Authenticate the client, if these are a user and the password.
    Login(Option<Credentials<'a>>),
}

/// Which keys are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scan<'a> {
    /// What they fit; see [`crate::glob`].
    pub pattern: &'a [u8],
    /// Those of a page that begins at this cursor and has about this many keys, whether they fit or
    /// not. None: all keys.
    pub page: Option<(u64, u32)>,
}

/// An item that is stored under another key, with its flags and expiry time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move<'a> {
    /// The key that it has.
    pub from: &'a [u8],
    /// The key that it gets.
    pub to: &'a [u8],
    /// An item that has this key already gives way.
    pub replaces: bool,
    /// It does not keep its old key.
    pub removes: bool,
}

/// What became of a [`Move`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moved {
    /// The item has the other key.
    Yes,
    /// There is no such item.
    NoSuchItem,
    /// Another item has the other key.
    Taken,
    /// With the other key it would be too large.
    TooLarge,
    /// There is no memory for it.
    OutOfMemory,
}

/// A user's name and password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Credentials<'a> {
    /// The name.
    pub user: &'a [u8],
    /// The password.
    pub password: &'a [u8],
}

/// What became of a command without a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer<'a> {
    /// It has been carried out, or the parser has answered it.
    Done,
    /// The server does not do this for clients.
    Denied,
    /// The server does not do this for this user.
    NotPermitted(Denial),
    /// The user has as many connections as it may; the connection is closed.
    TooManyConnections,
    /// The server does not do this for a datagram, whose sender may be forged.
    NotOverUdp,
    /// The server has been asked for this by datagrams too often.
    TooOften,
    /// No client needs to authenticate. The connection's number.
    NoLogin(u64),
    /// It names figures that there are not.
    NoSuchFigures,
    /// What the parts of the command come to.
    Sum(Sum),
    /// The connection's number.
    ConnectionId(u64),
    /// A number.
    Number(u64),
    /// The time in milliseconds since 1970.
    Time(u64),
    /// Text.
    Text(&'a [u8]),
    /// This many keys, which follow, and the cursor of the next page: zero if there is none.
    Keys {
        /// The cursor.
        cursor: u64,
        /// The number.
        count: u32,
    },
    /// More keys than are gathered.
    TooManyKeys,
    /// Any key, if there is one.
    Key(Option<&'a [u8]>),
    /// What became of an item that was to get another key.
    Moved(Moved),
    /// Figures of this name, of which there is one.
    Figure(&'static str, &'a [u8]),
}

/// How one protocol answers commands without a key.
pub trait Converse {
    /// Appends the answer to a command.
    fn emit(&self, control: &Control<'_>, answer: Answer<'_>, out: &mut Vec<u8>);

    /// Appends a key of [`Answer::Keys`].
    fn emit_key(&self, _key: &[u8], _out: &mut Vec<u8>) {}

    /// Appends figures, which are lines of `stats`. Unless `more` lines follow, these end with the
    /// last line of a reply in the text protocol.
    fn emit_figures(&self, lines: &[u8], more: bool, out: &mut Vec<u8>);
}
