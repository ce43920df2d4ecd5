//! Computes the shortest edit script between two sequences, after E. W. Myers, "An O(ND) Difference Algorithm and Its
//! Variations" (1986), in its greedy form.
//!
//! Several edit scripts can be equally short, and the choice between them determines the parts. Of two paths to a
//! diagonal, the one that has progressed further in the old sequence is chosen. If both have progressed equally far,
//! it is the one that removes.
//!
//! One bit is stored for each step and diagonal: whether the step was an addition. This is enough to reconstruct the
//! path, because equal units are always followed as far as possible.

/// Limit on the effort of comparing two texts: the number of visited diagonals plus the number of units found equal.
///
/// It is enough for any two texts of up to 7 000 units each (characters, words or lines), and for longer ones if they
/// do not differ too much. If they have no units in common, some 16 000 units can be removed and added, in a fraction
/// of a second and within 16 MiB of memory.
pub const EFFORT: u64 = 1 << 27;

/// Operation on a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Op {
    Keep,
    Remove,
    Add,
}

/// Adjacent units with the same operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Run {
    pub op: Op,
    pub count: usize,
}

/// Returns the shortest edit script from `old` to `new`. Returns `None` if it has more than `most` removals and
/// additions, or if it is not found within `effort`.
pub(super) fn shortest(old: &[u32], new: &[u32], most: Option<u64>, effort: u64) -> Option<Vec<Run>> {
    let trace = Search::new(old, new)?.run(most.unwrap_or(u64::MAX), effort)?;
    Some(runs(old, new, &trace))
}

/// Returns the edit script that replaces everything between the common beginning and the common end.
pub(super) fn coarse(old: &[u32], new: &[u32]) -> Vec<Run> {
    let head = common(old, new);
    let (old, new) = (&old[head..], &new[head..]);
    let tail = old.iter().rev().zip(new.iter().rev()).take_while(|(old, new)| old == new).count();
    let mut runs = Vec::new();
    push(&mut runs, Op::Keep, head);
    push(&mut runs, Op::Remove, old.len() - tail);
    push(&mut runs, Op::Add, new.len() - tail);
    push(&mut runs, Op::Keep, tail);
    runs
}

fn common(old: &[u32], new: &[u32]) -> usize {
    old.iter().zip(new).take_while(|(old, new)| old == new).count()
}

fn push(runs: &mut Vec<Run>, op: Op, count: usize) {
    match runs.last_mut() {
        Some(last) if last.op == op => last.count += count,
        _ if count == 0 => {}
        _ => runs.push(Run { op, count }),
    }
}

/// Returns the complete edit script. `adds` says which of its steps are additions.
fn runs(old: &[u32], new: &[u32], adds: &[bool]) -> Vec<Run> {
    let (mut x, mut y) = (0, 0);
    let mut runs = Vec::new();
    let follow = |runs: &mut Vec<Run>, x: &mut usize, y: &mut usize| {
        let equal = common(&old[*x..], &new[*y..]);
        push(runs, Op::Keep, equal);
        *x += equal;
        *y += equal;
    };
    follow(&mut runs, &mut x, &mut y);
    for &add in adds {
        if add {
            push(&mut runs, Op::Add, 1);
            y += 1;
        } else {
            push(&mut runs, Op::Remove, 1);
            x += 1;
        }
        follow(&mut runs, &mut x, &mut y);
    }
    runs
}

/// State of the search. The points on diagonal `k` are those at which `x` units of the old and `x - k` units of the
/// new sequence have been passed.
struct Search<'s> {
    old: &'s [u32],
    new: &'s [u32],
    old_len: i32,
    new_len: i32,
    /// The furthest `x` on each diagonal, starting at `-new_len - 1`.
    furthest: Vec<i32>,
    /// Range of the diagonals to search. Once a diagonal has reached the end of either sequence, no path beyond it is
    /// shorter than the one along that end.
    lowest: i32,
    highest: i32,
    steps: Steps,
    /// Effort so far.
    spent: u64,
}

/// Value of a diagonal that no path reaches. One more step from it does not lead to a valid point either.
const ABSENT: i32 = i32::MIN / 2;

impl<'s> Search<'s> {
    /// Returns `None` for sequences of hundreds of millions of units, which are too long to search.
    fn new(old: &'s [u32], new: &'s [u32]) -> Option<Self> {
        let limit = usize::try_from(i32::MAX / 4).ok()?;
        let diagonals = old.len().checked_add(new.len())?.checked_add(3).filter(|count| *count <= limit)?;
        let (old_len, new_len) = (i32::try_from(old.len()).ok()?, i32::try_from(new.len()).ok()?);
        Some(Self {
            old,
            new,
            old_len,
            new_len,
            furthest: vec![ABSENT; diagonals],
            lowest: -new_len,
            highest: old_len,
            steps: Steps::default(),
            spent: 0,
        })
    }

    /// Returns which steps of the shortest path are additions.
    fn run(mut self, most: u64, effort: u64) -> Option<Vec<bool>> {
        let head = i32::try_from(common(self.old, self.new)).ok()?;
        if self.arrive(0, head) {
            return Some(Vec::new());
        }
        let start = self.index(0);
        self.furthest[start] = head;
        let longest = self.old.len() as u64 + self.new.len() as u64;
        for edits in 1..=i32::try_from(most.min(longest)).ok()? {
            if let Some(end) = self.row(edits, effort)? {
                return Some(self.steps.back(end));
            }
        }
        None
    }

    /// Extends the paths on all diagonals by one edit. Returns `Some(Some(k))` if the path on `k` has reached the end,
    /// and `None` if the effort is exceeded.
    fn row(&mut self, edits: i32, effort: u64) -> Option<Option<i32>> {
        let first = self.lowest.max(-edits);
        // Each edit leads from an even diagonal to an odd one, or back.
        let first = first + ((first ^ edits) & 1);
        let last = self.highest.min(edits);
        self.steps.begin(first);
        let mut at = self.index(first);
        let mut left = self.furthest[at - 1];
        let mut k = first;
        while k <= last {
            let right = self.furthest[at + 1];
            self.steps.push(left < right);
            // Paths at the end of a sequence are outside `first` and `last`, so both steps lead to an existing
            // point.
            let start = right.max(left + 1);
            let x = self.follow(k, start);
            self.furthest[at] = x;
            if x != start {
                self.spent += u64::from((x - start).unsigned_abs());
                if self.spent > effort {
                    return None;
                }
            }
            if (x >= self.old_len || x - k >= self.new_len) && self.arrive(k, x) {
                self.steps.end();
                return Some(Some(k));
            }
            left = right;
            k += 2;
            at += 2;
        }
        self.steps.end();
        self.spent += 1 + u64::from((last - first).max(0).unsigned_abs() / 2);
        if self.spent > effort { None } else { Some(None) }
    }

    /// Returns how far units are equal from `x` on diagonal `k`.
    fn follow(&self, k: i32, mut x: i32) -> i32 {
        while let (Some(old), Some(new)) = (self.old.get(x as usize), self.new.get((x - k) as usize))
            && old == new
        {
            x += 1;
        }
        x
    }

    /// Narrows the range of diagonals if `x` on diagonal `k` is at the end of a sequence. Returns true if it is at the
    /// end of both.
    fn arrive(&mut self, k: i32, x: i32) -> bool {
        let (old_end, new_end) = (x >= self.old_len, x - k >= self.new_len);
        if old_end {
            self.highest = self.highest.min(k - 1);
        }
        if new_end {
            self.lowest = self.lowest.max(k + 1);
        }
        old_end && new_end
    }

    fn index(&self, k: i32) -> usize {
        (k + self.new_len + 1) as usize
    }
}

/// For each number of edits and each diagonal, a bit that is set if the step was an addition.
#[derive(Default)]
struct Steps {
    words: Vec<u64>,
    /// Bits that are not yet in `words`, and their number.
    word: u64,
    used: u32,
    /// For each number of edits, the first diagonal and the word that has its bit.
    rows: Vec<(i32, usize)>,
}

impl Steps {
    fn begin(&mut self, first: i32) {
        self.rows.push((first, self.words.len()));
    }

    fn push(&mut self, add: bool) {
        self.word |= u64::from(add) << self.used;
        self.used += 1;
        if self.used == u64::BITS {
            self.end();
        }
    }

    fn end(&mut self) {
        self.words.push(self.word);
        (self.word, self.used) = (0, 0);
    }

    /// Returns the steps that lead to diagonal `k` in the last row, in order.
    fn back(&self, mut k: i32) -> Vec<bool> {
        let mut adds: Vec<bool> = Vec::with_capacity(self.rows.len());
        for (first, start) in self.rows.iter().rev() {
            let bit = ((k - first) / 2) as usize;
            let add = self.words.get(start + bit / 64).is_some_and(|word| word >> (bit % 64) & 1 == 1);
            adds.push(add);
            k += if add { 1 } else { -1 };
        }
        adds.reverse();
        adds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(old: &[u32], new: &[u32]) -> String {
        let letter = |run: &Run| match run.op {
            Op::Keep => format!("={}", run.count),
            Op::Remove => format!("-{}", run.count),
            Op::Add => format!("+{}", run.count),
        };
        shortest(old, new, None, EFFORT).unwrap().iter().map(letter).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn equal_sequences_have_no_edits() {
        assert_eq!(of(&[], &[]), "");
        assert_eq!(of(&[1, 2], &[1, 2]), "=2");
    }

    #[test]
    fn an_empty_side_gives_a_single_run() {
        assert_eq!(of(&[1, 2, 3], &[]), "-3");
        assert_eq!(of(&[], &[1, 2, 3]), "+3");
        assert_eq!(of(&[1], &[2]), "-1 +1");
        assert_eq!(of(&[1, 2, 3], &[1, 3]), "=1 -1 =1");
    }

    #[test]
    fn edit_scripts_beyond_the_limits_are_not_returned() {
        assert!(shortest(&[1, 2], &[3, 4], Some(3), EFFORT).is_none());
        assert!(shortest(&[1, 2], &[3, 4], Some(4), EFFORT).is_some());
        assert!(shortest(&[1, 2], &[1, 2], Some(0), 0).is_some());
        assert!(shortest(&[1, 2, 3], &[4, 5, 6], None, 6).is_none());
    }

    #[test]
    fn the_fallback_edit_script_keeps_only_the_common_ends() {
        let runs = coarse(&[1, 1], &[1, 1, 1]);
        assert_eq!(runs, [Run { op: Op::Keep, count: 2 }, Run { op: Op::Add, count: 1 }]);
        assert_eq!(coarse(&[], &[]), []);
    }

    /// Returns the number of edits of the shortest edit script, computed with the textbook table.
    fn distance(old: &[u32], new: &[u32]) -> usize {
        let mut row: Vec<usize> = (0..=new.len()).collect();
        for (i, old) in old.iter().enumerate() {
            let mut diagonal = std::mem::replace(&mut row[0], i + 1);
            for (j, new) in new.iter().enumerate() {
                let best = if old == new { diagonal } else { row[j].min(row[j + 1]) + 1 };
                diagonal = std::mem::replace(&mut row[j + 1], best);
            }
        }
        row[new.len()]
    }

    proptest::proptest! {
        #[test]
        fn the_edit_script_is_as_short_as_possible(
            old in proptest::collection::vec(0_u32..4, 0..40),
            new in proptest::collection::vec(0_u32..4, 0..40),
        ) {
            let runs = shortest(&old, &new, None, EFFORT).unwrap();
            let edits: usize = runs.iter().filter(|run| run.op != Op::Keep).map(|run| run.count).sum();
            proptest::prop_assert_eq!(edits, distance(&old, &new));
        }
    }
}
