//! What the cores go by.

use crate::{AccessMode, Depths, Idle, Intake, Layout, Role};
use glimmer_base::Keyhash;
use glimmer_base::limits::DISPATCH_BATCH;

/// What is known of a request when it arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// It changes nothing. How large the value is, a lookup has to find out.
    Read,
    /// It changes an item, and carries a value of this many bytes.
    Write {
        /// Bytes of the value.
        bytes: u32,
    },
}

/// Where a request executes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// On the core that asked.
    Run,
    /// On this other core, which runs it without asking again.
    HandTo(usize),
}

/// What the cores go by until the policy makes another plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The partitions, and on which cores a request may execute: an access mode that allows no more
    /// than that of the store does.
    layout: Layout,
    /// Values of fewer bytes execute where their requests arrive.
    large_from: u32,
    /// By core.
    roles: Vec<Role>,
    /// Plans of one controller are numbered.
    version: u64,
    /// A controller wants to know what is requested.
    is_profiled: bool,
    /// Some core puts requests into its software queue.
    has_queues: bool,
    /// The access mode of the store is about to change.
    is_interim: bool,
}

impl Plan {
    /// A plan that hands over only what the access mode forbids.
    pub fn by_keyhash(layout: Layout) -> Plan {
        Plan {
            layout,
            large_from: u32::MAX,
            roles: (0..layout.map.cores())
                .map(|core| Role::reads_its_own(core, DISPATCH_BATCH))
                .collect(),
            version: 0,
            is_profiled: false,
            has_queues: false,
            is_interim: false,
        }
    }

    /// A plan in which any core executes any request, and the roles say from where each core takes
    /// its requests.
    ///
    /// # Panics
    ///
    /// If some core may not touch every partition, or there are not as many roles as cores.
    pub fn by_role(layout: Layout, roles: Vec<Role>) -> Plan {
        Plan::by_size(layout, u32::MAX, roles)
    }

    /// A plan that hands every request to the owner of its partition, also where other cores could
    /// execute it. It routes like EREW, whatever the store's access mode is.
    pub fn by_owner(layout: Layout) -> Plan {
        Plan::by_keyhash(Layout {
            access: AccessMode::Erew,
            ..layout
        })
    }

    /// A plan that hands requests for values of `large_from` bytes and more to the core whose role
    /// has their size.
    ///
    /// # Panics
    ///
    /// If some core may not touch every partition, or there are not as many roles as cores.
    pub fn by_size(layout: Layout, large_from: u32, roles: Vec<Role>) -> Plan {
        assert!(
            layout.access == AccessMode::Crcw || layout.map.cores() == 1,
            "any core executes any request"
        );
        assert_eq!(roles.len(), layout.map.cores(), "one role per core");
        Plan {
            layout,
            large_from,
            has_queues: roles.iter().any(|role| role.intake != Intake::Execute),
            roles,
            version: 0,
            is_profiled: false,
            is_interim: false,
        }
    }

    /// The plan while the access mode of the store changes. It hands every request to the owner of
    /// its partition, which may execute it under every access mode.
    pub fn interim(layout: Layout) -> Plan {
        Plan {
            is_interim: true,
            ..Plan::by_owner(layout)
        }
    }

    /// The same plan with a number.
    pub fn numbered(self, version: u64) -> Plan {
        Plan { version, ..self }
    }

    /// The same plan, under which cores count their requests by size.
    pub fn profiled(self) -> Plan {
        Plan {
            is_profiled: true,
            ..self
        }
    }

    /// Whether cores count their requests by size.
    #[inline(always)]
    pub fn is_profiled(&self) -> bool {
        self.is_profiled
    }

    /// Whether some core puts requests into its software queue.
    #[inline(always)]
    pub fn has_queues(&self) -> bool {
        self.has_queues
    }

    /// Whether the access mode of the store is about to change.
    #[inline(always)]
    pub fn is_interim(&self) -> bool {
        self.is_interim
    }

    /// Whether connections may be at home with a core: whether it ever reads what they send.
    pub fn is_home(&self, core: usize) -> bool {
        let role = &self.roles[core];
        let reads = role.reads.iter().any(|read| read.rx == core);
        (reads || role.takes.rx.contains(&core)) && !role.is_reserved
    }

    /// The number of the plan.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// What a core does.
    #[inline]
    pub fn role(&self, core: usize) -> &Role {
        &self.roles[core]
    }

    /// What each core does.
    pub fn roles(&self) -> &[Role] {
        &self.roles
    }

    /// Values of this many bytes and more execute on the core whose role has their size.
    /// `u32::MAX`: no request is sorted by size.
    pub fn large_from(&self) -> u32 {
        self.large_from
    }

    /// Where a core looks that has no request. Of several queues it takes the first that is not
    /// empty.
    #[inline]
    pub fn when_idle(&self, core: usize, depths: Depths<'_>) -> Idle {
        let takes = &self.roles[core].takes;
        if takes.beside_large {
            let longest = takes.rx.iter().max_by_key(|&&of| depths.rx[of]);
            let longest = longest.filter(|&&of| depths.rx[of] > depths.tx[core]);
            return longest.map_or(Idle::Wait, |&of| Idle::TakeReceived(of));
        }
        let queued = takes.queues.iter().find(|&&of| depths.queues[of] > 0);
        let received = || takes.rx.iter().find(|&&of| depths.rx[of] > 0);
        match queued {
            Some(&of) => Idle::TakeQueued(of),
            None => received().map_or(Idle::Wait, |&of| Idle::TakeReceived(of)),
        }
    }

    /// The partitions, and on which cores the plan lets a request execute. The access mode can be
    /// stricter than the store's.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Where a request that arrived at `core` executes, as far as that is known before a lookup.
    #[inline(always)]
    pub fn on_arrival(&self, core: usize, keyhash: Keyhash, ask: Ask) -> Decision {
        let is_read = ask == Ask::Read;
        if !self.layout.may_run(core, keyhash, is_read) {
            return Decision::HandTo(self.layout.map.owner(keyhash));
        }
        match ask {
            Ask::Write { bytes } if bytes >= self.large_from => self.on_sized(core, bytes),
            Ask::Read | Ask::Write { .. } => Decision::Run,
        }
    }

    /// Where a request that arrived at `core` executes, now that its value is known to have this
    /// many bytes.
    #[inline]
    pub fn on_sized(&self, core: usize, bytes: u32) -> Decision {
        if bytes < self.large_from {
            return Decision::Run;
        }
        let has = |role: &Role| role.sizes.contains(&bytes);
        match self.roles.iter().position(has) {
            Some(other) if other != core => Decision::HandTo(other),
            _ => Decision::Run,
        }
    }

    /// Bytes of the largest value that may be read before [`Plan::on_sized`] has been asked.
    #[inline(always)]
    pub fn size_max(&self) -> u32 {
        match self.large_from {
            u32::MAX => u32::MAX,
            large_from => large_from.saturating_sub(1),
        }
    }

    /// Whether requests for one key are executed in the order in which one connection handed them
    /// over, because they all execute on one core. Otherwise a connection waits for the reply of
    /// each request that it has handed over.
    #[inline(always)]
    pub fn keeps_order(&self) -> bool {
        self.layout.access != AccessMode::Crcw
    }
}
