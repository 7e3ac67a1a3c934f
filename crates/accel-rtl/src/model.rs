//! A library, loaded and clocked.

use crate::tools::Tools;
use crate::verilate::Variant;
use libc::{RTLD_LOCAL, RTLD_NOW, c_char, c_void, dlclose, dlerror, dlopen, dlsym};
use std::ffi::{CStr, CString};
use std::fmt;
use std::marker::PhantomData;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::NonNull;

/// The ports of a top.
///
/// # Safety
///
/// `In` and `Out` are `repr(C)`, consist of `u64` and arrays of `u64` alone, and are those of the
/// top's shim. (That their sizes agree is checked.)
pub unsafe trait Ports {
    /// The input ports.
    type In: Copy + Default + fmt::Debug;
    /// The output ports.
    type Out: Copy + Default + fmt::Debug;
}

/// A simulated top. The outputs follow the inputs in [`Model::settle`]; registers change in
/// [`Model::rise`].
pub struct Model<P: Ports> {
    circuit: NonNull<c_void>,
    functions: Functions<P>,
    /// Keeps what `functions` point into.
    _library: Library,
}

struct Functions<P: Ports> {
    free: unsafe extern "C" fn(*mut c_void),
    settle: unsafe extern "C" fn(*mut c_void, *const P::In, *mut P::Out),
    rise: unsafe extern "C" fn(*mut c_void),
    peek: unsafe extern "C" fn(*mut c_void, u64, u64) -> u64,
    trace: unsafe extern "C" fn(*mut c_void, *const c_char),
    stop_trace: unsafe extern "C" fn(*mut c_void),
    _ports: PhantomData<P>,
}

impl<P: Ports> Model<P> {
    /// Builds a variant if necessary, and makes a circuit of it. The registers have random contents
    /// by the seed, as after power-up.
    ///
    /// # Panics
    ///
    /// If that is not possible.
    pub fn new(tools: &Tools, variant: &Variant, seed: u64) -> Model<P> {
        let library = Library::open(&variant.build(tools));
        let sizes = [
            (c"top_inputs", size_of::<P::In>()),
            (c"top_outputs", size_of::<P::Out>()),
        ];
        for (name, bytes) in sizes {
            // SAFETY: the shim defines the function so.
            let count: unsafe extern "C" fn() -> u64 = unsafe { library.function(name) };
            // SAFETY: as above. It has no side effects.
            let words = unsafe { count() } as usize;
            assert_eq!(
                words * size_of::<u64>(),
                bytes,
                "{name:?} of {}",
                variant.top.shim
            );
        }
        // SAFETY: the shim defines the functions so, by the contract of `Ports`.
        let (new, functions) = unsafe {
            let new: unsafe extern "C" fn(u64) -> *mut c_void = library.function(c"top_new");
            let functions = Functions {
                free: library.function(c"top_free"),
                settle: library.function(c"top_settle"),
                rise: library.function(c"top_rise"),
                peek: library.function(c"top_peek"),
                trace: library.function(c"top_trace"),
                stop_trace: library.function(c"top_stop_trace"),
                _ports: PhantomData,
            };
            (new, functions)
        };
        // SAFETY: it returns a circuit of its own, which `Drop` frees.
        let circuit = NonNull::new(unsafe { new(seed) }).expect("a circuit");
        Model {
            circuit,
            functions,
            _library: library,
        }
    }

    /// The outputs under these inputs. Nothing is stored.
    pub fn settle(&mut self, inputs: &P::In) -> P::Out {
        let mut outputs = P::Out::default();
        // SAFETY: the circuit is alive, and both structs are the shim's by the contract of `Ports`.
        unsafe { (self.functions.settle)(self.circuit.as_ptr(), inputs, &mut outputs) };
        outputs
    }

    /// A rising edge of the clock, under the inputs last settled.
    pub fn rise(&mut self) {
        // SAFETY: the circuit is alive.
        unsafe { (self.functions.rise)(self.circuit.as_ptr()) };
    }

    /// Writes all signals to a file (VCD) from now on, if the variant is traced.
    pub fn trace(&mut self, file: &Path) {
        let name = CString::new(file.as_os_str().as_bytes()).expect("a path");
        // SAFETY: the circuit is alive, and the name ends with a zero.
        unsafe { (self.functions.trace)(self.circuit.as_ptr(), name.as_ptr()) };
    }

    /// Ends the file.
    pub fn stop_trace(&mut self) {
        // SAFETY: the circuit is alive.
        unsafe { (self.functions.stop_trace)(self.circuit.as_ptr()) };
    }

    /// What no port shows; the shim says what there is.
    pub fn peek(&self, what: u64, index: usize) -> u64 {
        // SAFETY: the circuit is alive. The function changes nothing.
        unsafe { (self.functions.peek)(self.circuit.as_ptr(), what, index as u64) }
    }
}

impl<P: Ports> Drop for Model<P> {
    fn drop(&mut self) {
        // SAFETY: the circuit is alive, and not used after this.
        unsafe { (self.functions.free)(self.circuit.as_ptr()) };
    }
}

impl<P: Ports> fmt::Debug for Model<P> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Model").finish_non_exhaustive()
    }
}

struct Library(NonNull<c_void>);

impl Library {
    fn open(path: &Path) -> Library {
        let name = CString::new(path.as_os_str().as_bytes()).expect("a path");
        // SAFETY: the name ends with a zero. The library's initialisers set up its own data.
        let handle = unsafe { dlopen(name.as_ptr(), RTLD_NOW | RTLD_LOCAL) };
        Library(NonNull::new(handle).unwrap_or_else(|| panic!("{}: {}", path.display(), error())))
    }

    /// # Safety
    ///
    /// `F` is the type of a pointer to the function of this name.
    unsafe fn function<F: Copy>(&self, name: &CStr) -> F {
        // SAFETY: the library is open, and the name ends with a zero.
        let address = unsafe { dlsym(self.0.as_ptr(), name.as_ptr()) };
        assert!(!address.is_null(), "{}", error());
        const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
        // SAFETY: `F` is a pointer to this function, by the contract.
        unsafe { std::mem::transmute_copy(&address) }
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        // SAFETY: it is open. `Model` calls its functions no more.
        unsafe { dlclose(self.0.as_ptr()) };
    }
}

fn error() -> String {
    // SAFETY: the text is copied before another call to the loader on this thread.
    unsafe {
        let text = dlerror();
        if text.is_null() {
            return "no error".into();
        }
        CStr::from_ptr(text).to_string_lossy().into_owned()
    }
}
