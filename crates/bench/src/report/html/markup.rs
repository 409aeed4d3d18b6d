//! Text and JSON as parts of a page that they cannot break out of.

use std::fmt::{Display, Formatter, Result, Write};

/// A text as the content of an element or of an attribute in quotes.
pub(super) struct Text<'a>(pub(super) &'a str);

impl Display for Text<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        for c in self.0.chars() {
            match c {
                '&' => out.write_str("&amp;")?,
                '<' => out.write_str("&lt;")?,
                '>' => out.write_str("&gt;")?,
                '"' => out.write_str("&quot;")?,
                '\'' => out.write_str("&#39;")?,
                // What HTML does not allow in any form: the parser would report it.
                '\0'..='\x08' | '\x0b'..='\x1f' | '\x7f'..='\u{9f}' => out.write_char('\u{fffd}')?,
                c => out.write_char(c)?,
            }
        }
        Ok(())
    }
}

/// A name as the content of an element; a long one may break after an underscore.
pub(super) fn name(name: &str) -> String {
    Text(name).to_string().replace('_', "_<wbr>")
}

/// JSON as the content of a `script` element. A `<` stands in strings only, where JSON has another way to write it.
pub(super) fn json_for_script(json: &str) -> String {
    json.replace('<', "\\u003c")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_character_of_markup_is_left() {
        assert_eq!(
            Text("<a b=\"c\" d='&'>\0").to_string(),
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
