//! `stats dispatch`, an addition to memcached's statistics: the dispatch policy in force, what each
//! worker does under its plan, and requests by the size of their values.

use glimmer_dispatch::{Intake, Plan, Role, SizeClass};
use glimmer_node::DispatchView;

use super::ServerAdmin;
use super::lines::Lines;

pub(super) fn write(admin: &ServerAdmin, lines: &mut Lines<'_>) {
    let node = admin.node.get();
    let Some(view) = node.and_then(|node| node.figures.dispatch()) else {
        return;
    };
    let on_plan = view.taken.iter().filter(|&&taken| taken == view.version);
    lines.put("policy", view.policy.name());
    lines.put("access", view.access);
    lines.put("plan_version", view.version);
    lines.put("workers_on_plan", on_plan.count());
    lines.put("epochs", view.epochs);
    if view.plan.large_from() < u32::MAX {
        lines.put("large_from_bytes", view.plan.large_from());
    }
    workers(&view, lines);
    classes(&view, lines);
}

fn workers(view: &DispatchView, lines: &mut Lines<'_>) {
    let all = view.profiles.iter().map(|profile| profile.requests());
    let all = all.sum::<u64>().max(1) as f64;
    for (worker, (role, profile)) in view.plan.roles().iter().zip(&view.profiles).enumerate() {
        let mut put = |name: &str, figure: String| {
            lines.put(&format!("worker:{worker}:{name}"), figure);
        };
        put("role", role_name(&view.plan, role).to_owned());
        if !role.sizes.is_empty() {
            put("sizes_from_bytes", role.sizes.start.to_string());
            put("sizes_below_bytes", role.sizes.end.to_string());
        }
        if view.plan.is_profiled() {
            let requests = profile.requests();
            put("requests", requests.to_string());
            put("requests_share", format!("{:.4}", requests as f64 / all));
            let bytes = SizeClass::all().map(|class| profile.bytes_of_class(class));
            put("value_bytes", bytes.sum::<u64>().to_string());
        }
    }
}

/// What a worker does.
fn role_name(plan: &Plan, role: &Role) -> &'static str {
    match role.intake {
        Intake::HandOff => "dispatching",
        Intake::Enqueue => "stealing",
        Intake::Execute if plan.large_from() == u32::MAX => "all",
        Intake::Execute if role.sizes.is_empty() => "small",
        Intake::Execute if role.takes.rx.is_empty() => "large",
        Intake::Execute => "standby",
    }
}

/// Requests that were counted by size, of every class that had some.
fn classes(view: &DispatchView, lines: &mut Lines<'_>) {
    for class in SizeClass::all() {
        let count = |of: fn(&glimmer_dispatch::Histogram, SizeClass) -> u64| {
            view.profiles
                .iter()
                .map(|profile| of(profile, class))
                .sum::<u64>()
        };
        let requests = count(glimmer_dispatch::Histogram::of_class);
        if requests > 0 {
            let below = class.sizes().end;
            lines.put(&format!("class:{below}:requests"), requests);
            let bytes = count(glimmer_dispatch::Histogram::bytes_of_class);
            lines.put(&format!("class:{below}:value_bytes"), bytes);
        }
    }
}
