//! Fault injection points: between steps whose order decides the state after a crash, and where a
//! panic must end one task only. A test ends the process, or panics, at one of them.
//!
//! The hook exists only with debug assertions. In a release build [`point`] does nothing.

#[cfg(debug_assertions)]
static HOOK: std::sync::OnceLock<fn(&str)> = std::sync::OnceLock::new();

/// Sets the function that every point calls. The first hook of a process stays.
#[cfg(debug_assertions)]
pub fn set_hook(hook: fn(&str)) {
    let _ = HOOK.set(hook);
}

/// Calls the hook, if one is set.
#[inline]
pub fn point(name: &str) {
    #[cfg(debug_assertions)]
    if let Some(hook) = HOOK.get() {
        hook(name);
    }
    #[cfg(not(debug_assertions))]
    let _ = name;
}
