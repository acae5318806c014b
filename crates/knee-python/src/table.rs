//! Tables by the Arrow PyCapsule interface, without a copy.

use std::sync::Arc;

use arrow_array::builder::StringViewBuilder;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{
    Array, ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, RecordBatchIterator,
};
use arrow_buffer::{BooleanBuffer, NullBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use knee_lab::record::{TableColumns, ValueKind, Values};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyList};

use crate::errors::KneeError;

/// A table of a run, a sweep or a ranking. Names of columns end with their unit: nanoseconds,
/// bytes, bits per second.
///
/// Anything that accepts an Arrow stream takes it without a copy: `polars.DataFrame(table)`,
/// `pyarrow.table(table)`, `duckdb.sql("select * from samples")` with a table `samples`.
#[pyclass(frozen, module = "knee")]
pub struct Table {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

impl Table {
    /// Converts a table to Arrow.
    pub fn new(columns: TableColumns) -> PyResult<Table> {
        let fields = columns.declared.iter().map(|column| {
            let kind = match column.kind {
                ValueKind::Integers => DataType::Int64,
                ValueKind::Floats => DataType::Float64,
                ValueKind::Texts => DataType::Utf8View,
                ValueKind::Flags => DataType::Boolean,
            };
            Field::new(&column.name, kind, column.nullable)
        });
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let batch = |values: Vec<Values>| {
            RecordBatch::try_new(schema.clone(), values.into_iter().map(array).collect())
        };
        let batches: Result<_, ArrowError> = columns.batches.into_iter().map(batch).collect();
        Ok(Table { batches: batches.map_err(|e| KneeError::new_err(e.to_string()))?, schema })
    }
}

fn array(values: Values) -> ArrayRef {
    let nulls = |present: Option<Vec<bool>>| present.map(NullBuffer::from);
    match values {
        Values::Integers(values, present) => {
            Arc::new(Int64Array::new(ScalarBuffer::from(values), nulls(present)))
        }
        Values::Floats(values, present) => {
            Arc::new(Float64Array::new(ScalarBuffer::from(values), nulls(present)))
        }
        Values::Flags(values, present) => {
            Arc::new(BooleanArray::new(BooleanBuffer::from(values), nulls(present)))
        }
        Values::Texts(words, rows) => {
            let mut builder =
                StringViewBuilder::with_capacity(rows.len()).with_deduplicate_strings();
            rows.iter().for_each(|row| {
                builder.append_option(row.map(|word| words[word as usize].as_str()));
            });
            Arc::new(builder.finish())
        }
    }
}

#[pymethods]
impl Table {
    /// The Arrow PyCapsule interface. Ignores a requested schema, as the interface allows.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let batches = self.batches.clone().into_iter().map(Ok);
        let reader = RecordBatchIterator::new(batches, self.schema.clone());
        let stream = FFI_ArrowArrayStream::new(Box::new(reader));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    fn __len__(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// Names of the columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.schema.fields().iter().map(|field| field.name().clone()).collect()
    }

    /// The values of a column as a list; `None` for a missing value.
    fn __getitem__<'py>(&self, py: Python<'py>, column: &str) -> PyResult<Bound<'py, PyList>> {
        let missing =
            |_| PyKeyError::new_err(format!("no column {column:?}: {:?}", self.columns()));
        let at = self.schema.index_of(column).map_err(missing)?;
        let list = PyList::empty(py);
        for batch in &self.batches {
            append(&list, batch.column(at))?;
        }
        Ok(list)
    }

    /// The table as a `polars.DataFrame`; Polars must be installed.
    fn to_polars<'py>(this: Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        this.py().import("polars")?.call_method1("DataFrame", (this,))
    }

    /// The table as a `pandas.DataFrame`; pandas and pyarrow must be installed.
    fn to_pandas<'py>(this: Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let table = this.py().import("pyarrow")?.call_method1("table", (this,))?;
        table.call_method0("to_pandas")
    }

    fn __repr__(&self) -> String {
        format!("<knee.Table of {} rows: {}>", self.__len__(), self.columns().join(", "))
    }
}

fn append(list: &Bound<'_, PyList>, array: &ArrayRef) -> PyResult<()> {
    let any = array.as_any();
    let is_null = |row: usize| array.is_null(row);
    for row in 0..array.len() {
        if is_null(row) {
            list.append(list.py().None())?;
        } else if let Some(all) = any.downcast_ref::<Int64Array>() {
            list.append(all.value(row))?;
        } else if let Some(all) = any.downcast_ref::<Float64Array>() {
            list.append(all.value(row))?;
        } else if let Some(all) = any.downcast_ref::<BooleanArray>() {
            list.append(all.value(row))?;
        } else if let Some(all) = any.downcast_ref::<arrow_array::StringViewArray>() {
            list.append(all.value(row))?;
        }
    }
    Ok(())
}
