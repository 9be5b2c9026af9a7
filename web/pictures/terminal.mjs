// What a terminal shows, as HTML: text with the escape sequences that set colours and weights.

const NAMES = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];
const NORMAL = {
  black: "#3b4252",
  red: "#e06c75",
  green: "#98c379",
  yellow: "#e5c07b",
  blue: "#61afef",
  magenta: "#c678dd",
  cyan: "#56b6c2",
  white: "#d7dae0",
};
const BRIGHT = { ...NORMAL, black: "#7f8897", red: "#ff7b86", green: "#b5e08f", yellow: "#ffd68a", blue: "#82c4ff", white: "#ffffff" };
export const GROUND = "#14181f";
export const INK = "#d7dae0";

/** One of the 256 colours: 16 by name, a cube of six steps each, and 24 greys. */
function indexed(number) {
  if (number < 8) return NORMAL[NAMES[number]];
  if (number < 16) return BRIGHT[NAMES[number - 8]];
  if (number >= 232) return grey(8 + 10 * (number - 232));
  const step = place => [0, 95, 135, 175, 215, 255][Math.floor((number - 16) / place) % 6];
  return `rgb(${step(36)}, ${step(6)}, ${step(1)})`;
}
const grey = level => `rgb(${level}, ${level}, ${level})`;

/** The colour that 38 or 48 begin, taken from what follows them. */
function extended(codes) {
  return codes.shift() === 5 ? indexed(codes.shift()) : `rgb(${codes.splice(0, 3).join(", ")})`;
}

/** How text looks after a sequence. */
function styled(before, sequence) {
  const style = { ...before };
  const codes = sequence.split(/[;:]/).map(Number);
  while (codes.length > 0) {
    const code = codes.shift();
    if (code === 0) for (const key of Object.keys(style)) delete style[key];
    else if (code === 1) style.bold = true;
    else if (code === 2) style.dim = true;
    else if (code === 4) style.underlined = true;
    else if (code === 7) style.reversed = true;
    else if (code === 22) style.bold = style.dim = false;
    else if (code === 24) style.underlined = false;
    else if (code === 27) style.reversed = false;
    else if (code === 38) style.ink = extended(codes);
    else if (code === 48) style.ground = extended(codes);
    else if (code === 39) delete style.ink;
    else if (code === 49) delete style.ground;
    else if (code >= 30 && code < 38) style.ink = NORMAL[NAMES[code - 30]];
    else if (code >= 40 && code < 48) style.ground = NORMAL[NAMES[code - 40]];
    else if (code >= 90 && code < 98) style.ink = BRIGHT[NAMES[code - 90]];
    else if (code >= 100 && code < 108) style.ground = BRIGHT[NAMES[code - 100]];
  }
  return style;
}

function css({ ink, ground, bold, dim, underlined, reversed }) {
  const [front, back] = reversed ? [ground ?? GROUND, ink ?? INK] : [ink, ground];
  const rules = [
    front && `color:${front}`,
    back && `background:${back}`,
    bold && "font-weight:700",
    dim && "opacity:.65",
    underlined && "text-decoration:underline",
  ];
  return rules.filter(Boolean).join(";");
}

const escaped = text => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");

/** A page that looks like the terminal. */
export function terminalPage(text) {
  let style = {};
  let spans = "";
  // biome-ignore lint/suspicious/noControlCharactersInRegex: escape sequences begin with one
  for (const part of text.trimEnd().split(/(\x1b\[[\d;:]*m)/)) {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: as above
    const [, sequence] = /^\x1b\[([\d;:]*)m$/.exec(part) ?? [];
    if (sequence !== undefined) style = styled(style, sequence);
    else if (part) spans += `<span style="${css(style)}">${escaped(part)}</span>`;
  }
  const font = "font:15px/1.2 'DejaVu Sans Mono',monospace";
  return `<!doctype html><body style="margin:0;background:${GROUND}"><pre style="margin:0;padding:14px;display:inline-block;color:${INK};${font}">${spans}</pre>`;
}
