/** A statement of a `.sql` file that lists several. */
export interface NamedStatement {
  /** From the comment `-- name: …` before it, else `statement N`. */
  readonly name: string;
  readonly sql: string;
}

type TokenKind = "comment" | "string" | "identifier" | "space" | "word" | "other";

interface Token {
  readonly kind: TokenKind;
  readonly text: string;
}

const TOKEN = new RegExp(
  [
    String.raw`(?<comment>--[^\n]*|/\*[\s\S]*?(?:\*/|$))`,
    String.raw`(?<string>'(?:[^']|'')*'?)`,
    '(?<identifier>"(?:[^"]|"")*"?|`(?:[^`]|``)*`?|\\[[^\\]]*\\]?)',
    String.raw`(?<space>\s+)`,
    String.raw`(?<word>[\w$.]+)`,
    String.raw`(?<other>[\s\S])`,
  ].join("|"),
  "gu",
);

function* tokensOf(sql: string): Generator<Token> {
  for (const { groups = {}, 0: text } of sql.matchAll(TOKEN)) {
    const kind = (Object.keys(groups) as TokenKind[]).find((name) => groups[name] !== undefined);
    yield { kind: kind ?? "other", text };
  }
}

/**
 * Splits a list of statements at their semicolons, those in strings and comments aside.
 * Trigger definitions, which contain semicolons of their own, do not belong in such a list.
 */
export function splitStatements(sql: string): readonly NamedStatement[] {
  const statements: NamedStatement[] = [];
  let name: string | undefined;
  let current = "";
  for (const { kind, text } of [...tokensOf(sql), { kind: "other", text: ";" } as const]) {
    if (kind === "comment") {
      if (current.trim() === "") name = /^--\s*name:\s*(.+?)\s*$/.exec(text)?.[1] ?? name;
      else current += " ";
    } else if (kind === "other" && text === ";") {
      const statement = current.trim();
      if (statement !== "")
        statements.push({ name: name ?? `statement ${statements.length + 1}`, sql: statement });
      if (statement !== "") name = undefined;
      current = "";
    } else {
      current += text;
    }
  }
  return statements;
}

/**
 * One spelling for definitions that mean the same: comments, white space, letter case and needless quotes are gone.
 * SQLite keeps the text of a definition, and rewrites parts of it when a table is altered, so texts cannot be compared as they are.
 */
export function normalizeSql(sql: string): string {
  const words: string[] = [];
  for (const { kind, text } of tokensOf(sql)) {
    switch (kind) {
      case "comment":
      case "space":
        break;
      case "string":
        words.push(text);
        break;
      case "identifier":
        words.push(unquote(text));
        break;
      case "word":
      case "other":
        words.push(text.toLowerCase());
        break;
      default:
        kind satisfies never;
    }
  }
  return words.join(" ");
}

function unquote(identifier: string): string {
  const inner = identifier.slice(1, -1);
  return /^[A-Za-z_]\w*$/.test(inner) ? inner.toLowerCase() : identifier;
}

/** Quotes a name for use in a statement. */
export function quoteName(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}
