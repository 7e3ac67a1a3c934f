//! A program at an interface.

use crate::error::Error;
use crate::interface;
use crate::program::Program;
use crate::settings::{Growth, Limits, Mode, Settings};
use glimmer_hotset::Memory;
use glimmer_transport::xdp::{Link, Program as Redirection};
use std::sync::Arc;

/// A packet program that is attached. Dropping it detaches the program; so does the end of the
/// process, however it ends.
#[derive(Debug)]
pub struct Attached {
    /// What the program takes packets from goes first.
    links: Vec<Link>,
    program: Program,
    /// The maps of the redirection, until they are taken.
    redirection: Option<Redirection>,
}

impl Attached {
    /// The memory that the program answers from. It stays valid after the program is detached.
    pub fn memory(&self) -> Arc<Memory> {
        self.program.memory().clone()
    }

    /// The maps of the redirection, if the settings have one and nobody has taken them.
    pub fn take_redirection(&mut self) -> Option<Redirection> {
        self.redirection.take()
    }

    /// How the program is attached.
    pub fn mode(&self) -> Mode {
        self.program.mode()
    }

    /// Whether the interface is still there. One that comes back under its name has no program.
    pub fn has_interface(&self) -> bool {
        self.links.iter().all(Link::is_tied)
    }
}

/// Loads the program and attaches it. All slots are empty. The interface is looked up in the
/// network namespace of the calling thread.
///
/// # Errors
///
/// Why that is not possible. Nothing is left attached then.
pub fn attach(settings: &Settings) -> Result<Attached, Error> {
    let limits = Limits {
        frame_bytes_max: interface::frame_bytes_max(settings.ifindex)?,
        growth: Growth {
            tail: true,
            head: true,
            hand_over: true,
        },
    };
    let mut program = Program::load(settings, &limits)?;
    let redirection = settings.redirection.map(|_| program.take_redirection());
    let mut links = program.attach(settings.ifindex)?;
    // They are dropped in their order, and nothing is to be handed over to a program that has gone.
    links.reverse();
    Ok(Attached {
        links,
        program,
        redirection: redirection.transpose()?,
    })
}
