//! A tree of summaries over the servers, for searches that skip what cannot win.

use std::ops::Range;

use super::summary::Summary;
use crate::policy::Score;

/// A complete binary tree: node 1 is the root, node `i` has children `2i` and `2i + 1`, servers are the leaves.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Tree {
    nodes: Vec<Summary>,
    leaves: usize,
}

/// A subtree: its node and the leaves below it.
#[derive(Clone)]
struct Branch {
    node: usize,
    leaves: Range<usize>,
}

impl Tree {
    pub(super) fn new(summaries: impl ExactSizeIterator<Item = Summary>) -> Self {
        let leaves = summaries.len().next_power_of_two();
        let mut nodes = vec![Summary::EMPTY; 2 * leaves];
        for (node, summary) in nodes[leaves..].iter_mut().zip(summaries) {
            *node = summary;
        }
        let mut tree = Self { nodes, leaves };
        (1..leaves).rev().for_each(|node| tree.nodes[node] = tree.merged(node));
        tree
    }

    fn merged(&self, node: usize) -> Summary {
        self.nodes[2 * node].merge(&self.nodes[2 * node + 1])
    }

    pub(super) const fn has_leaf(&self, leaf: usize) -> bool {
        leaf < self.leaves
    }

    pub(super) fn root(&self) -> Option<&Summary> {
        self.nodes.get(1)
    }

    pub(super) fn set(&mut self, leaf: usize, summary: &Summary) {
        let (mut node, mut summary) = (self.leaves + leaf, *summary);
        // Above a node that stays as it is, all stay.
        while self.nodes[node] != summary {
            self.nodes[node] = summary;
            node /= 2;
            if node == 0 {
                return;
            }
            summary = self.merged(node);
        }
    }

    /// The leaf in the range for which `visit` answers the least score, the first of equals.
    ///
    /// `bound` answers a score that nothing below a summary can beat, or `None` when nothing below it will do; branches
    /// that cannot beat the best found so far are not entered, and the better of two is entered first.
    pub(super) fn best<T>(
        &self,
        range: Range<usize>,
        bound: &impl Fn(&Summary) -> Option<Score>,
        visit: &mut impl FnMut(usize) -> Option<(Score, T)>,
    ) -> Option<T> {
        let mut best = None;
        // A tree of one leaf has no branch that lies outside the range.
        if !range.is_empty() && self.root().and_then(bound).is_some() {
            self.descend(&Branch { node: 1, leaves: 0..self.leaves }, &range, bound, visit, &mut best);
        }
        best.map(|(_, found)| found)
    }

    fn descend<T>(
        &self,
        branch: &Branch,
        range: &Range<usize>,
        bound: &impl Fn(&Summary) -> Option<Score>,
        visit: &mut impl FnMut(usize) -> Option<(Score, T)>,
        best: &mut Option<((Score, usize), T)>,
    ) {
        if branch.leaves.len() == 1 {
            let leaf = branch.leaves.start;
            if let Some((score, found)) = visit(leaf)
                && best.as_ref().is_none_or(|(beaten, _)| (score, leaf) < *beaten)
            {
                *best = Some(((score, leaf), found));
            }
            return;
        }
        let middle = usize::midpoint(branch.leaves.start, branch.leaves.end);
        let left = Branch { node: 2 * branch.node, leaves: branch.leaves.start..middle };
        let right = Branch { node: 2 * branch.node + 1, leaves: middle..branch.leaves.end };
        let best_case = |branch: &Branch| {
            let overlaps = branch.leaves.start < range.end && range.start < branch.leaves.end;
            let score = overlaps.then(|| bound(&self.nodes[branch.node])).flatten()?;
            Some((score, branch.leaves.start.max(range.start)))
        };
        let mut children = [(best_case(&left), left), (best_case(&right), right)];
        children.sort_by_key(|(best_case, _)| best_case.unwrap_or((Score(u64::MAX), usize::MAX)));
        for (best_case, child) in children {
            if best_case.is_some_and(|best_case| best.as_ref().is_none_or(|(beaten, _)| best_case < *beaten)) {
                self.descend(&child, range, bound, visit, best);
            }
        }
    }
}
