//! Escaping of text and JSON for HTML.

use std::fmt::{Display, Formatter, Result, Write};

/// Text that is formatted as the content of an element or of a quoted attribute.
pub(super) struct Escaped<'a>(pub(super) &'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        for c in self.0.chars() {
            match c {
                '&' => out.write_str("&amp;")?,
                '<' => out.write_str("&lt;")?,
                '>' => out.write_str("&gt;")?,
                '"' => out.write_str("&quot;")?,
                '\'' => out.write_str("&#39;")?,
                // Control characters are invalid in HTML, even as character references (WHATWG
                // HTML, 13.1.4).
                '\0'..='\x08' | '\x0b'..='\x1f' | '\x7f'..='\u{9f}' => out.write_char('\u{fffd}')?,
                c => out.write_char(c)?,
            }
        }
        Ok(())
    }
}

/// Formats a name as the content of an element. A line may break after each underscore.
pub(super) fn name(name: &str) -> String {
    Escaped(name).to_string().replace('_', "_<wbr>")
}

/// Escapes JSON for a `script` element. `<` occurs only within JSON strings, where `\u003c` is
/// equivalent.
pub(super) fn json_for_script(json: &str) -> String {
    json.replace('<', "\\u003c")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_character_of_markup_is_left() {
        assert_eq!(
            Escaped("<a b=\"c\" d='&'>\0").to_string(),
            "&lt;a b=&quot;c&quot; d=&#39;&amp;&#39;&gt;\u{fffd}"
        );
    }

    #[test]
    fn json_cannot_end_its_script_and_means_the_same() {
        let texts = ["</script><script>", "<!--", "a"];
        let escaped = json_for_script(&serde_json::to_string(&texts).unwrap());
        assert!(!escaped.contains('<'));
        assert_eq!(serde_json::from_str::<Vec<String>>(&escaped).unwrap(), texts);
    }
}
