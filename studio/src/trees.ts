/** Trees of blocks: they never change, other ones are made of them. */

export interface Block {
  kind: string;
  parts?: Block[];
  type?: string;
  where?: string;
  called?: string;
  word?: string;
  within?: string;
  count?: number;
  least?: boolean;
  events?: Block[];
}

export interface Rule {
  name: string;
  pattern?: Block | null;
  same?: string[];
  rest?: string;
  manner?: string;
  why?: string;
}

export type Path = number[];
export type Side = "before" | "behind" | "below";

export const LABELS: Record<string, string> = {
  either: "either",
  together: "together",
  optional: "optionally",
  repeat: "↻ any number of times",
  any: "any of",
};

const SEVERAL = new Set(["sequence", "either", "together", "any"]);

export function at(tree: Block, path: Path): Block | undefined {
  return path.reduce<Block | undefined>((block, n) => block?.parts?.[n], tree);
}

export function replaced(tree: Block, path: Path, by: Block): Block {
  const [first, ...rest] = path;
  if (first === undefined) return by;
  return { ...tree, parts: (tree.parts ?? []).map((part, n) => (n === first ? replaced(part, rest, by) : part)) };
}

/** What is left without a part; what is around one part only goes, too. */
export function without(tree: Block, path: Path): Block | null {
  const [first, ...rest] = path;
  if (first === undefined) return null;
  const parts = (tree.parts ?? []).flatMap((part, n) => {
    if (n !== first) return [part];
    const left = without(part, rest);
    return left ? [left] : [];
  });
  if (!parts.length) return null;
  return SEVERAL.has(tree.kind) && parts.length === 1 ? parts[0]! : { ...tree, parts };
}

/** A block beside another: in the sequence or choice that it is in, or in a new one. */
export function placed(tree: Block, path: Path, block: Block, side: Side): Block {
  const kind = side === "below" ? "either" : "sequence";
  const target = at(tree, path)!;
  const around = at(tree, path.slice(0, -1));
  const n = path[path.length - 1];
  if (n !== undefined && around?.kind === kind && !(kind === "sequence" && around.within)) {
    const parts = [...(around.parts ?? [])];
    parts.splice(side === "before" ? n : n + 1, 0, block);
    return replaced(tree, path.slice(0, -1), { ...around, parts });
  }
  if (target.kind === kind && !(kind === "sequence" && target.within)) {
    const parts = side === "before" ? [block, ...(target.parts ?? [])] : [...(target.parts ?? []), block];
    return replaced(tree, path, { ...target, parts });
  }
  const made: Block = { kind, parts: side === "before" ? [block, target] : [target, block] };
  return replaced(tree, path, kind === "sequence" ? { ...made, word: "followed by" } : made);
}

/** A block taken from its place and put beside another; null where it would be put into itself. */
export function moved(tree: Block, from: Path, to: Path, side: Side): Block | null {
  const block = at(tree, from);
  if (!block || to.slice(0, from.length).join() === from.join()) return null;
  const mark: Block = { kind: "mark" };
  const put = placed(replaced(tree, from, mark), to, block, side);
  const where = find(put, mark);
  return where && without(put, where);
}

function find(tree: Block, block: Block, path: Path = []): Path | null {
  if (tree === block) return path;
  for (const [n, part] of (tree.parts ?? []).entries()) {
    const found = find(part, block, [...path, n]);
    if (found) return found;
  }
  return null;
}

/** What is chosen, with more around it or behind it; and where the new block then is. */
export function extended(tree: Block, path: Path, kind: string, event: Block): [Block, Path] {
  const chosen = at(tree, path) ?? tree;
  const own = at(tree, path) ? path : [];
  if (kind === "event") return [placed(tree, own, event, "behind"), []];
  if (kind === "either") return [placed(tree, own, event, "below"), []];
  const made: Record<string, Block> = {
    together: { kind, parts: [chosen, event] },
    times: { kind, parts: [chosen], count: 3, within: "10 min" },
    absent: { kind, parts: [chosen], events: [event], within: "10 min" },
    without: { kind, parts: [chosen], events: [event] },
    wait: { kind, parts: [chosen], within: "10 min" },
  };
  return [replaced(tree, own, made[kind] ?? { kind, parts: [chosen] }), own];
}

/** For who hears it. */
export function words(block: Block): string {
  if (block.kind === "event") return `event ${block.type ?? ""}`;
  return `${LABELS[block.kind] ?? block.kind} of ${(block.parts ?? []).length}`;
}
