//! Alignment of two sequences: elements that both contain, in the same order, are paired. Used for the lines of two
//! answers, the tool calls of two trials, and their steps.

/// Maximum product of the two lengths. Beyond it, only the common start and the common end are aligned.
const ALIGNED: usize = 4_000_000;

/// Indices of an element in the two sequences; one index is absent if only the other sequence has the element.
pub(crate) type Row = (Option<usize>, Option<usize>);

/// Aligns two sequences so that as many elements as possible are paired. Where they differ, the left elements come
/// before the right ones that replace them.
pub(crate) fn align<T: PartialEq>(left: &[T], right: &[T]) -> Vec<Row> {
    let front = left.iter().zip(right).take_while(|(a, b)| a == b).count();
    let (rest, other) = (&left[front..], &right[front..]);
    let back = rest.iter().rev().zip(other.iter().rev()).take_while(|(a, b)| a == b).count();
    let (rest, other) = (&rest[..rest.len() - back], &other[..other.len() - back]);

    let mut rows: Vec<Row> = (0..front).map(|index| (Some(index), Some(index))).collect();
    let inner = if rest.len().saturating_mul(other.len()) > ALIGNED { Vec::new() } else { common(rest, other) };
    let (mut a, mut b) = (0, 0);
    for (i, j) in inner.into_iter().chain([(rest.len(), other.len())]) {
        rows.extend((a..i).map(|index| (Some(front + index), None)));
        rows.extend((b..j).map(|index| (None, Some(front + index))));
        if i < rest.len() {
            rows.push((Some(front + i), Some(front + j)));
        }
        (a, b) = (i + 1, j + 1);
    }
    let ends = (left.len() - back, right.len() - back);
    rows.extend((0..back).map(|index| (Some(ends.0 + index), Some(ends.1 + index))));
    rows
}

/// Returns the longest common subsequence as pairs of indices.
fn common<T: PartialEq>(left: &[T], right: &[T]) -> Vec<(usize, usize)> {
    let width = right.len() + 1;
    // Length of the longest common subsequence of the two rests that start at each pair of indices.
    let mut lengths = vec![0u32; (left.len() + 1) * width];
    for i in (0..left.len()).rev() {
        for j in (0..right.len()).rev() {
            lengths[i * width + j] = if left[i] == right[j] {
                lengths[(i + 1) * width + j + 1] + 1
            } else {
                lengths[(i + 1) * width + j].max(lengths[i * width + j + 1])
            };
        }
    }
    let (mut i, mut j, mut pairs) = (0, 0, Vec::new());
    while i < left.len() && j < right.len() {
        if left[i] == right[j] {
            pairs.push((i, j));
            (i, j) = (i + 1, j + 1);
        } else if lengths[(i + 1) * width + j] >= lengths[i * width + j + 1] {
            i += 1;
        } else {
            j += 1;
        }
    }
    pairs
}

/// Moves elements that only one sequence has next to the elements that replace them in the other sequence.
pub(crate) fn side_by_side(rows: &[Row]) -> Vec<Row> {
    let mut joined: Vec<Row> = Vec::with_capacity(rows.len());
    // Index in `joined` of the first row since the last common element that has no right side.
    let mut free = 0;
    for row in rows {
        match *row {
            (None, right) if free < joined.len() => {
                joined[free].1 = right;
                free += 1;
            }
            row => {
                joined.push(row);
                if row.0.is_none() || row.1.is_some() {
                    free = joined.len();
                }
            }
        }
    }
    joined
}

/// Returns the index of the first row that differs.
pub(crate) fn divergence<T: PartialEq>(rows: &[Row], left: &[T], right: &[T]) -> Option<usize> {
    rows.iter().position(|row| !is_same(*row, left, right))
}

/// Returns `true` if both sequences have the row's element.
pub(crate) fn is_same<T: PartialEq>(row: Row, left: &[T], right: &[T]) -> bool {
    matches!(row, (Some(a), Some(b)) if left[a] == right[b])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw(left: &str, right: &str, joined: bool) -> String {
        let (left, right): (Vec<char>, Vec<char>) = (left.chars().collect(), right.chars().collect());
        let rows = align(&left, &right);
        let rows = if joined { side_by_side(&rows) } else { rows };
        let letter = |letters: &[char], at: Option<usize>| at.map_or('.', |index| letters[index]);
        rows.iter().map(|(a, b)| format!("{}{} ", letter(&left, *a), letter(&right, *b))).collect()
    }

    #[test]
    fn common_elements_are_next_to_each_other() {
        assert_eq!(draw("abc", "abc", false), "aa bb cc ");
        assert_eq!(draw("abc", "axc", false), "aa b. .x cc ");
        assert_eq!(draw("abcd", "bd", false), "a. bb c. dd ");
        assert_eq!(draw("", "ab", false), ".a .b ");
        assert_eq!(draw("ab", "", false), "a. b. ");
        assert_eq!(draw("aa", "aaa", false), "aa aa .a ");
        assert_eq!(draw("xaybz", "paqbr", false), "x. .p aa y. .q bb z. .r ");
    }

    #[test]
    fn replaced_elements_are_next_to_their_replacements() {
        assert_eq!(draw("abc", "axc", true), "aa bx cc ");
        assert_eq!(draw("abbc", "axc", true), "aa bx b. cc ");
        assert_eq!(draw("abc", "axyc", true), "aa bx .y cc ");
        assert_eq!(draw("ab", "xyb", true), "ax .y bb ");
        assert_eq!(draw("ac", "abcd", true), "aa .b cc .d ");
    }

    #[test]
    fn the_first_difference_is_found_even_in_long_sequences() {
        let first = |left: &[u32], right: &[u32]| divergence(&side_by_side(&align(left, right)), left, right);
        assert_eq!(first(&[1, 2, 3], &[1, 2, 3]), None);
        assert_eq!(first(&[1, 2, 3], &[1, 9, 3]), Some(1));
        assert_eq!(first(&[1, 2], &[1, 2, 3]), Some(2));
        let left: Vec<u32> = (0..5_000).collect();
        let right: Vec<u32> = (0..5_000).map(|n| if (10..4_990).contains(&n) { n + 10_000 } else { n }).collect();
        let rows = align(&left, &right);
        assert_eq!((rows.len(), divergence(&rows, &left, &right)), (10 + 2 * 4_980 + 10, Some(10)));
    }
}
