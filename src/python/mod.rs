//! The Python module `katro._katro`: the only place that knows of Python.

mod batch;
mod board;
mod columns;
mod input;
mod rules;
mod search;

use pyo3::create_exception;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

create_exception!(
    katro,
    IllegalMoveError,
    PyValueError,
    "An action that is not legal in its position.\n\n\
     The message names the action, the legal ones and the position. Nothing has changed."
);

/// The Rust engine of katro.
#[pymodule]
mod _katro {
    #[pymodule_export]
    use super::IllegalMoveError;
    #[pymodule_export]
    use super::batch::PyBatch;
    #[pymodule_export]
    use super::board::{PyBoard, perft};
    #[pymodule_export]
    use super::rules::PyRules;
    #[pymodule_export]
    use super::search::search;

    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        let names: Vec<&str> = crate::Rules::NAMED.iter().map(|&(name, _)| name).collect();
        module.add("RULES", pyo3::types::PyTuple::new(module.py(), names)?)?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        let py = module.py();
        module.add("Finals", super::batch::finals_type(py)?)?;
        module.add("Lap", super::board::lap_type(py)?)?;
        module.add("Rollout", super::batch::rollout_type(py)?)?;
        module.add("SearchResult", super::search::search_result_type(py)?)?;
        module.add("Step", super::batch::step_type(py)?)
    }
}
