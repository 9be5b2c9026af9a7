//! A page that is one file: it asks for no other, is whole without scripts, light or dark as the reader likes, and fit for print.

use super::palette::{DARK, LIGHT};
use super::svg::escape;

const STYLE: &str = include_str!("page.css");

/// The page around what is written: its title, rules of its own for the style sheet, and what it holds as HTML.
pub fn page(title: &str, style: &str, main: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en-GB\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<title>{}</title>\n\
         <style>\n{STYLE}{style}{}@media screen and (prefers-color-scheme: dark) {{\n{}}}\n</style>\n</head>\n<body>\n<main>\n\
         {main}</main>\n</body>\n</html>\n",
        escape(title),
        LIGHT.rules(),
        DARK.rules()
    )
}
