use crate::{Event, Hook, Result, error};

/// A plugin as [`plugin!`](crate::plugin) makes it: what a test calls.
pub struct Plugin {
    #[doc(hidden)]
    pub manifest: &'static [u8],
    #[doc(hidden)]
    pub configure: fn() -> Result,
    #[doc(hidden)]
    pub hook: fn(i32) -> Result,
}

impl Plugin {
    /// The manifest's JSON.
    pub const fn manifest(&self) -> &'static str {
        match core::str::from_utf8(self.manifest) {
            Ok(text) => text,
            Err(_) => "",
        }
    }

    #[doc(hidden)]
    pub fn answer_configure(&self) -> i32 {
        error::answer(self.configure)
    }

    #[doc(hidden)]
    pub fn answer_hook(&self, hook: i32) -> i32 {
        error::answer(|| (self.hook)(hook))
    }
}

/// Has panics end the call with their message and place, which a trap would not show.
#[doc(hidden)]
pub fn report_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let payload = panic.payload();
        let text = payload.downcast_ref::<&str>().copied();
        let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("of no text");
        let (file, line) = panic.location().map_or(("", 0), |place| (place.file(), place.line()));
        crate::host::abort(&["panic: ", text, " at ", file, ":", &line.to_string()].concat());
    }));
}

/// Calls a handler with its hook's event.
#[doc(hidden)]
pub fn with_event<E: Event>(handler: impl FnOnce(&E) -> Result) -> Result {
    handler(&E::CURRENT)
}

/// What a hook that the manifest does not name comes to.
#[doc(hidden)]
pub fn no_handler() -> Result {
    Err("the plugin has no handler of this hook".into())
}

/// The hook of a handler's event.
#[doc(hidden)]
pub const fn hook_of<E: Event>() -> Hook {
    E::HOOK
}

/// Makes the plugin that this crate is. A crate does it once.
///
/// ```
/// use wasmproxy::{PreCreateContainer, Result};
///
/// wasmproxy::plugin! {
///     name: "cpu-boost",
///     version: "1.0.0",
///     description: "doubles the CPU quota of pods that ask for it",
///     license: "Apache-2.0",
///     needs: [Resources, Annotations],
///     on PreCreateContainer(boost) matching { namespaces: ["prod-*"], labels: { "tier": "gold" } },
/// }
///
/// fn boost(c: &PreCreateContainer) -> Result {
///     if c.pod().annotation("example.com/boost").as_deref() != Some("2x") {
///         return Ok(());
///     }
///     c.resources().set_cpu_quota(2 * c.resources().cpu_quota())?;
///     c.set_annotation("example.com/boosted", "true")
/// }
/// # fn main() {}
/// ```
///
/// | key | |
/// |---|---|
/// | `name`, `version` | 1 to 63 letters, digits and any of `. _ + -` |
/// | `description`, `license` | for people; the licence is an SPDX expression |
/// | `needs` | the [capabilities](crate::Capability); what is not here is denied |
/// | `config` | `Type = function`: a `fn(&str) -> Result<Type>` that reads the operator's configuration before the first hook; an error refuses the plugin. All handlers then take a `&Type` first |
/// | `config_schema` | a JSON schema that the host holds the configuration to before |
/// | `state` | [`None`](crate::State::None) or [`Instance`](crate::State::Instance) |
/// | `tick_ms` | the period of [`Tick`](crate::Tick), 1000 or more |
/// | `limits` | `{ fuel: …, memory: …, time_ms: …, host_calls: …, tick_host_calls: …, tick_fuel: …, tick_time_ms: … }`, see [`Limits`](crate::Limits) |
/// | `durable` | prefixes of keys whose values in [`kv`](crate::kv) outlive a restart of the proxy, but not of the node; `""` stands for all keys |
/// | `optional` | names of host functions and hooks that it can do without |
/// | `on Hook(handler)` | has the handler called; `matching { … }` narrows it, see [`Match`](crate::Match) |
///
/// Keys may come in any order. What the host would refuse, such as a name with a space or
/// two handlers of one hook, does not compile:
///
/// ```compile_fail,E0080
/// # use wasmproxy::{PostStopContainer, Result};
/// wasmproxy::plugin! {
///     name: "cpu boost", // plugin!: name is not 1 to 63 letters, digits and any of . _ + -
///     version: "1.0.0",
///     on PostStopContainer(stopped),
/// }
/// # fn stopped(_: &PostStopContainer) -> Result { Ok(()) }
/// # fn main() {}
/// ```
///
/// The macro also makes a `PLUGIN`, which [`test`](crate::test) calls.
#[macro_export]
macro_rules! plugin {
    ($($all:tt)*) => { $crate::__plugin! { [] [] [] $($all)* } };
}

// Takes one key after another off the input: [fields of the manifest] [type and function of
// the configuration] [hooks] rest.
#[doc(hidden)]
#[macro_export]
macro_rules! __plugin {
    ($m:tt $c:tt $h:tt name: $v:expr $(, $($rest:tt)*)?) => { $crate::__field! { $m $c $h name: $v; $($($rest)*)? } };
    ($m:tt $c:tt $h:tt version: $v:expr $(, $($rest:tt)*)?) => { $crate::__field! { $m $c $h version: $v; $($($rest)*)? } };
    ($m:tt $c:tt $h:tt description: $v:expr $(, $($rest:tt)*)?) => { $crate::__field! { $m $c $h description: $v; $($($rest)*)? } };
    ($m:tt $c:tt $h:tt license: $v:expr $(, $($rest:tt)*)?) => { $crate::__field! { $m $c $h license: $v; $($($rest)*)? } };
    ($m:tt $c:tt $h:tt tick_ms: $v:expr $(, $($rest:tt)*)?) => { $crate::__field! { $m $c $h tick_ms: $v; $($($rest)*)? } };
    ($m:tt $c:tt $h:tt config_schema: $v:expr $(, $($rest:tt)*)?) => { $crate::__field! { $m $c $h config_schema: $v; $($($rest)*)? } };
    ($m:tt $c:tt $h:tt needs: [$($v:ident),* $(,)?] $(, $($rest:tt)*)?) => {
        $crate::__field! { $m $c $h needs: &[$($crate::Capability::$v),*]; $($($rest)*)? }
    };
    ($m:tt $c:tt $h:tt state: None $(, $($rest:tt)*)?) => { $crate::__plugin! { $m $c $h $($($rest)*)? } };
    ([$($m:tt)*] $c:tt $h:tt state: Instance $(, $($rest:tt)*)?) => { $crate::__plugin! { [Instance $($m)*] $c $h $($($rest)*)? } };
    ($m:tt $c:tt $h:tt limits: { $($k:ident: $v:expr),* $(,)? } $(, $($rest:tt)*)?) => {
        $crate::__field! { $m $c $h limits: $crate::Limits { $($k: $v,)* ..$crate::Limits::DEFAULT }; $($($rest)*)? }
    };
    ($m:tt $c:tt $h:tt durable: [$($v:expr),* $(,)?] $(, $($rest:tt)*)?) => { $crate::__field! { $m $c $h durable: &[$($v),*]; $($($rest)*)? } };
    ($m:tt $c:tt $h:tt optional: [$($v:expr),* $(,)?] $(, $($rest:tt)*)?) => { $crate::__field! { $m $c $h optional: &[$($v),*]; $($($rest)*)? } };
    ($m:tt [] $h:tt config: $t:ty = $f:expr $(, $($rest:tt)*)?) => { $crate::__plugin! { $m [$t, $f] $h $($($rest)*)? } };
    ($m:tt $c:tt [$($h:tt)*] on $hook:ident($f:expr) matching { $($match:tt)* } $(, $($rest:tt)*)?) => {
        $crate::__plugin! { $m $c [$($h)* ($hook, $f, $crate::__match!([] $($match)*))] $($($rest)*)? }
    };
    ($m:tt $c:tt [$($h:tt)*] on $hook:ident($f:expr) $(, $($rest:tt)*)?) => {
        $crate::__plugin! { $m $c [$($h)* ($hook, $f, $crate::Match::ANY)] $($($rest)*)? }
    };
    ([Instance $($m:tt)*] $c:tt $h:tt) => { $crate::__define! { [$($m)* state: $crate::State::Instance,] $c $h } };
    ($m:tt $c:tt $h:tt) => {
        // Memory is put back after each call: nothing need be freed.
        #[cfg(target_arch = "wasm32")]
        #[global_allocator]
        static __WASMPROXY_BUMP: $crate::Bump = $crate::Bump::new();

        $crate::__define! { $m $c $h }
    };
    ($m:tt $c:tt $h:tt $key:ident $($rest:tt)*) => {
        compile_error!(concat!("plugin!: `", stringify!($key), "` is no key, is there twice, or has another value than it takes"));
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __field {
    ([$($m:tt)*] $c:tt $h:tt $key:ident: $v:expr; $($rest:tt)*) => { $crate::__plugin! { [$($m)* $key: $v,] $c $h $($rest)* } };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __match {
    ([$($m:tt)*] $key:ident: [$($v:expr),* $(,)?] $(, $($rest:tt)*)?) => { $crate::__match!([$($m)* $key: &[$($v),*],] $($($rest)*)?) };
    ([$($m:tt)*] $key:ident: { $($k:literal: $v:expr),* $(,)? } $(, $($rest:tt)*)?) => {
        $crate::__match!([$($m)* $key: &[$(($k, $v)),*],] $($($rest)*)?)
    };
    ([$($m:tt)*]) => { $crate::Match { $($m)* ..$crate::Match::ANY } };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __define {
    ([$($m:tt)*] [$($c:tt)*] [$(($hook:ident, $f:expr, $match:expr))*]) => {
        const _: () = {
            #[cfg(target_arch = "wasm32")]
            #[unsafe(link_section = "wp.manifest")]
            pub static SECTION: [u8; __WASMPROXY_MANIFEST.len()] = __WASMPROXY_MANIFEST.array();

            #[cfg(target_arch = "wasm32")]
            #[unsafe(no_mangle)]
            extern "C" fn _initialize() {
                $crate::report_panics();
            }

            #[cfg(target_arch = "wasm32")]
            #[unsafe(no_mangle)]
            extern "C" fn wp_abi() -> i32 {
                $crate::abi::VERSION
            }

            #[cfg(target_arch = "wasm32")]
            #[unsafe(no_mangle)]
            extern "C" fn wp_configure() -> i32 {
                PLUGIN.answer_configure()
            }

            #[cfg(target_arch = "wasm32")]
            #[unsafe(no_mangle)]
            extern "C" fn wp_hook(hook: i32) -> i32 {
                PLUGIN.answer_hook(hook)
            }
        };

        const __WASMPROXY_MANIFEST: $crate::Json = $crate::Manifest {
            $($m)*
            hooks: &[$(($crate::hook_of::<$crate::$hook>(), $match)),*],
            ..$crate::Manifest::EMPTY
        }
        .json();

        /// The plugin, for tests.
        pub static PLUGIN: $crate::Plugin = {
            #[cfg(not(target_arch = "wasm32"))]
            static MANIFEST: [u8; __WASMPROXY_MANIFEST.len()] = __WASMPROXY_MANIFEST.array();
            #[cfg(target_arch = "wasm32")]
            static MANIFEST: [u8; 0] = []; // the custom section has it

            $crate::__handlers! { [$($c)*] [$(($hook, $f))*] }
            $crate::Plugin { manifest: &MANIFEST, configure, hook }
        };
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __handlers {
    ([] [$(($hook:ident, $f:expr))*]) => {
        fn configure() -> $crate::Result {
            Ok(())
        }

        fn hook(number: i32) -> $crate::Result {
            $(
                if number == $crate::Hook::$hook as i32 {
                    return $crate::with_event::<$crate::$hook>($f);
                }
            )*
            $crate::no_handler()
        }
    };
    ([$t:ty, $parse:expr] [$(($hook:ident, $f:expr))*]) => {
        ::std::thread_local! {
            static CONFIG: ::std::cell::RefCell<::std::option::Option<::std::rc::Rc<$t>>> = const { ::std::cell::RefCell::new(None) };
        }

        fn configure() -> $crate::Result {
            let parse: fn(&str) -> $crate::Result<$t> = $parse;
            let config = parse(&$crate::config())?;
            CONFIG.set(Some(::std::rc::Rc::new(config)));
            Ok(())
        }

        fn hook(number: i32) -> $crate::Result {
            let config = CONFIG.with_borrow(|c| c.clone()).ok_or("wp_configure was not called")?;
            $(
                if number == $crate::Hook::$hook as i32 {
                    let handler: fn(&$t, &$crate::$hook) -> $crate::Result = $f;
                    return $crate::with_event::<$crate::$hook>(|event| handler(&config, event));
                }
            )*
            $crate::no_handler()
        }
    };
}
