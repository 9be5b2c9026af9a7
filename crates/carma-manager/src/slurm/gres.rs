//! Generic resources in Slurm's words: `gpu:a100:4(S:0-1),shard:160`.

/// An amount of a resource, on a node or requested on each node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gres {
    /// Its name: `gpu`, `shard`.
    pub name: String,
    /// Its type, such as `a100`, if it has one.
    pub kind: Option<String>,
    /// How many.
    pub count: u64,
}

/// Reads a list, as nodes have it (`gpu:a100:4(S:0-1)`), users write it (`gpu:2`) and jobs show it (`gres:shard:10`, `gres/shard:10`). What cannot be
/// read is left out.
///
/// ```
/// use carma_manager::slurm::gres_list;
/// let list = gres_list("gpu:a100:4(S:0,1),gres/shard:160");
/// assert_eq!((list[0].kind.as_deref(), list[0].count), (Some("a100"), 4));
/// assert_eq!((list[1].name.as_str(), list[1].count), ("shard", 160));
/// ```
pub fn list(text: &str) -> Vec<Gres> {
    let mut depth = 0;
    let bare: String = text
        .chars()
        .filter(|letter| {
            depth += i32::from(*letter == '(');
            let outside = depth == 0;
            depth -= i32::from(*letter == ')');
            outside
        })
        .collect();
    bare.split(',').filter_map(one).collect()
}

fn one(text: &str) -> Option<Gres> {
    let text = text.trim();
    let text = text.strip_prefix("gres:").or_else(|| text.strip_prefix("gres/")).unwrap_or(text);
    let parts: Vec<&str> = text.split([':', '=']).collect();
    let (name, kind, count) = match parts.as_slice() {
        [name] => (name, None, Some(1)),
        [name, word] => match number(word) {
            None if word.starts_with(|letter: char| letter.is_ascii_digit()) => return None,
            None => (name, Some(*word), Some(1)),
            count => (name, None, count),
        },
        [name, kind, count] => (name, Some(*kind), number(count)),
        _ => return None,
    };
    let named = !name.is_empty() && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
    Some(Gres { name: (*name).to_owned(), kind: kind.map(str::to_owned), count: count.filter(|_| named)? })
}

/// A count, with Slurm's units of 1024.
fn number(text: &str) -> Option<u64> {
    let (digits, factor) = match text.chars().last()? {
        'k' | 'K' => (&text[..text.len() - 1], 1 << 10),
        'm' | 'M' => (&text[..text.len() - 1], 1 << 20),
        _ => (text, 1),
    };
    digits.parse::<u64>().ok()?.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(list_of: &str) -> String {
        let words = list(list_of).into_iter().map(|Gres { name, kind, count }| format!("{name}/{}/{count}", kind.unwrap_or_default()));
        words.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn lists_of_nodes_users_and_jobs_are_read() {
        assert_eq!(text("gpu:a100:2,shard:a100:80"), "gpu/a100/2 shard/a100/80");
        assert_eq!(text("gpu:a100:4(S:0,1),shard:160(S:0-1)"), "gpu/a100/4 shard//160");
        assert_eq!(text("gpu,gpu:2,gpu:h100,mps:2K"), "gpu//1 gpu//2 gpu/h100/1 mps//2048");
        assert_eq!(text("gres:shard:10,gres/gpu:a100=2"), "shard//10 gpu/a100/2");
        assert_eq!(text("(null)"), "");
        assert_eq!(text("gpu:a:b:c,gpu:2x,:,"), "");
    }
}
