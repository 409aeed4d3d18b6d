//! Points between steps whose order decides what a crash leaves behind: a test ends the process at
//! one of them.
//!
//! Compiled with debug assertions only. In a release build `point` does nothing, and there is no
//! hook to set.

#[cfg(debug_assertions)]
static HOOK: std::sync::OnceLock<fn(&str)> = std::sync::OnceLock::new();

/// Has `hook` called at every point from now on. The first hook of a process stays.
#[cfg(debug_assertions)]
pub fn set_hook(hook: fn(&str)) {
    let _ = HOOK.set(hook);
}

/// Calls the hook, if there is one.
pub(crate) fn point(name: &str) {
    #[cfg(debug_assertions)]
    if let Some(hook) = HOOK.get() {
        hook(name);
    }
    #[cfg(not(debug_assertions))]
    let _ = name;
}
