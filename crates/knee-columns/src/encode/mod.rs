//! Encodes a column chunk: the pages of one column in a row group.
//!
//! A column of a time series of many flows mostly repeats, for each flow, what was there before. So
//! values are places in a dictionary, which costs little to find if they are as the last of their
//! series; numbers of which many differ are differences of neighbours where that takes less room.

mod delta;
mod dictionary;

pub(crate) use dictionary::{Dictionary, SeriesOfRows};

use crate::Cells;
use crate::bits::BitWriter;
use crate::cells::Texts;
use delta::delta;
use dictionary::hybrid;
use parquet::basic::{Compression, Encoding};
use parquet::column::page::{CompressedPage, Page, PageWriter};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::ParquetError;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::statistics::Statistics;
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;

/// The values of a chunk, encoded.
struct Encoded {
    encoding: Encoding,
    bytes: Vec<u8>,
    /// Distinct values, and their number.
    dictionary: Option<(Vec<u8>, usize)>,
    statistics: Option<Statistics>,
}

/// A column chunk as it is in the file.
pub(crate) struct Chunk {
    pub bytes: Vec<u8>,
    pub described: ColumnCloseResult,
}

/// Encodes the cells of a column.
pub(crate) fn chunk(
    cells: &Cells,
    column: &ColumnDescPtr,
    series: &SeriesOfRows,
) -> Result<Chunk, ParquetError> {
    let rows = cells.rows();
    let (encoded, present) = match cells {
        Cells::Integers(values, present) => (integers(values, present.as_deref(), series), present),
        Cells::Floats(values, present) => (floats(values, present.as_deref(), series), present),
        Cells::Texts(texts, present) => (strings(texts), present),
        Cells::Flags(values, present) => (flags(values), present),
    };
    let mut data = Vec::new();
    if column.max_def_level() > 0 {
        data.extend_from_slice(&[0; 4]);
        match present {
            Some(present) if present.contains(&0) => {
                let levels: Vec<u32> = present.iter().map(|level| *level as u32).collect();
                hybrid(&levels, 1, &mut data);
            }
            _ => hybrid(&vec![1; rows], 1, &mut data),
        }
        let length = data.len() as u32 - 4;
        data[..4].copy_from_slice(&length.to_le_bytes());
    }
    data.extend_from_slice(&encoded.bytes);
    pages(rows, column, encoded, data)
}

fn integers(values: &[i64], present: Option<&[i16]>, series: &SeriesOfRows) -> Encoded {
    let found = Dictionary::of(values.iter().map(|value| *value as u64), present, series);
    let distinct = || found.distinct.iter().map(|value| *value as i64);
    let gaps = present.map_or(0, |present| present.len() - values.len()) as u64;
    let statistics = Statistics::int64(distinct().min(), distinct().max(), None, Some(gaps), false);
    let encoded = with_dictionary(&found, plain(&found.distinct)).with(statistics);
    if found.distinct.len() < values.len() / 16 {
        return encoded;
    }
    let bytes = delta(values);
    if bytes.len() >= encoded.size() {
        return encoded;
    }
    let statistics = encoded.statistics;
    Encoded { encoding: Encoding::DELTA_BINARY_PACKED, bytes, dictionary: None, statistics }
}

fn floats(values: &[f64], present: Option<&[i16]>, series: &SeriesOfRows) -> Encoded {
    let found = Dictionary::of(values.iter().map(|value| value.to_bits()), present, series);
    let encoded = with_dictionary(&found, plain(&found.distinct));
    if encoded.size() < 8 * values.len() {
        return encoded;
    }
    let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    Encoded { encoding: Encoding::PLAIN, bytes, dictionary: None, statistics: None }
}

fn strings(texts: &Texts) -> Encoded {
    let Texts { distinct, places, .. } = texts;
    let append = |bytes: &mut Vec<u8>, text: &[u8]| {
        bytes.extend_from_slice(&(text.len() as u32).to_le_bytes());
        bytes.extend_from_slice(text);
    };
    if distinct.len() > places.len() / 2 {
        let mut bytes = Vec::new();
        places.iter().for_each(|place| append(&mut bytes, distinct[*place as usize].data()));
        return Encoded { encoding: Encoding::PLAIN, bytes, dictionary: None, statistics: None };
    }
    let mut all = Vec::new();
    distinct.iter().for_each(|text| append(&mut all, text.data()));
    let numbers = (0..distinct.len() as u64).collect();
    with_dictionary(&Dictionary { distinct: numbers, places: places.clone() }, all)
}

fn flags(values: &[bool]) -> Encoded {
    let mut bytes = Vec::new();
    let mut writer = BitWriter::new(&mut bytes);
    values.iter().for_each(|value| writer.put(u64::from(*value), 1));
    writer.finish();
    Encoded { encoding: Encoding::PLAIN, bytes, dictionary: None, statistics: None }
}

fn plain(values: &[u64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// Encodes places in a dictionary of which the values are encoded already.
fn with_dictionary(found: &Dictionary, values: Vec<u8>) -> Encoded {
    let width = found.width();
    let mut bytes = vec![width as u8];
    hybrid(&found.places, width, &mut bytes);
    let dictionary = Some((values, found.distinct.len()));
    Encoded { encoding: Encoding::RLE_DICTIONARY, bytes, dictionary, statistics: None }
}

impl Encoded {
    fn with(self, statistics: Statistics) -> Encoded {
        Encoded { statistics: Some(statistics), ..self }
    }

    fn size(&self) -> usize {
        self.bytes.len() + self.dictionary.as_ref().map_or(0, |(values, _)| values.len())
    }
}

/// Arranges the encoded values, of which `data` is the data page, in pages. They are compressed if
/// that makes them smaller.
fn pages(
    rows: usize,
    column: &ColumnDescPtr,
    encoded: Encoded,
    data: Vec<u8>,
) -> Result<Chunk, ParquetError> {
    let Encoded { encoding, dictionary, statistics, .. } = encoded;
    // Packed differences do not become smaller.
    let compress = encoding != Encoding::DELTA_BINARY_PACKED;
    let mut sink = TrackedWrite::new(Vec::new());
    let mut writer = SerializedPageWriter::new(&mut sink);
    let mut uncompressed = 0;
    let mut write = |page: &dyn Fn(Vec<u8>) -> Page, bytes: Vec<u8>| {
        let size = bytes.len();
        let bytes = if compress { compressed(&bytes)? } else { bytes };
        let written = writer.write_page(CompressedPage::new(page(bytes), size))?;
        uncompressed += written.uncompressed_size;
        Ok::<_, ParquetError>(written.offset as i64)
    };
    let mut encodings = vec![encoding, Encoding::RLE];
    let dictionary_offset = match dictionary {
        Some((values, count)) => {
            encodings.push(Encoding::PLAIN);
            let page = |buf: Vec<u8>| Page::DictionaryPage {
                buf: buf.into(),
                num_values: count as u32,
                encoding: Encoding::PLAIN,
                is_sorted: false,
            };
            Some(write(&page, values)?)
        }
        None => None,
    };
    let page = |buf: Vec<u8>| Page::DataPage {
        buf: buf.into(),
        num_values: rows as u32,
        encoding,
        def_level_encoding: Encoding::RLE,
        rep_level_encoding: Encoding::RLE,
        statistics: None,
    };
    let data_offset = write(&page, data)?;
    let bytes = sink.into_inner()?;
    let compression = if compress { Compression::SNAPPY } else { Compression::UNCOMPRESSED };
    let mut metadata = ColumnChunkMetaData::builder(column.clone())
        .set_encodings(encodings)
        .set_compression(compression)
        .set_num_values(rows as i64)
        .set_total_compressed_size(bytes.len() as i64)
        .set_total_uncompressed_size(uncompressed as i64)
        .set_dictionary_page_offset(dictionary_offset)
        .set_data_page_offset(data_offset);
    if let Some(statistics) = statistics {
        metadata = metadata.set_statistics(statistics);
    }
    let described = ColumnCloseResult {
        bytes_written: bytes.len() as u64,
        rows_written: rows as u64,
        metadata: metadata.build()?,
        bloom_filter: None,
        column_index: None,
        offset_index: None,
    };
    Ok(Chunk { bytes, described })
}

fn compressed(bytes: &[u8]) -> Result<Vec<u8>, ParquetError> {
    let compressed = snap::raw::Encoder::new().compress_vec(bytes);
    compressed.map_err(|error| ParquetError::External(Box::new(error)))
}
