/** Counts of events by lane and time, asked for tile by tile and kept. While one is on its way, a coarser one stands in. */

import { getNumbers } from "./api";

export const BUCKETS = 256;
const MOST = 600;

export interface Tile {
  level: number;
  index: number;
  counts: Uint32Array | null;
  stale: boolean;
  asked: boolean;
}

export class Tiles {
  private readonly kept = new Map<string, Tile>();
  private version = 0;

  constructor(
    private readonly layer: "events" | "detections",
    private readonly arrived: () => void,
  ) {}

  filter = "";

  /** Other data: nothing that was known counts. */
  forget(): void {
    this.version++;
    this.kept.clear();
  }

  /** More has come: what is known stands in until it is known again. */
  outdate(from: number): void {
    for (const tile of this.kept.values()) {
      if ((tile.index + 1) * BUCKETS * 2 ** tile.level >= from) tile.stale = true;
    }
  }

  /** The level at which a bucket is about two pixels wide. */
  static level(microsecondsPerPixel: number): number {
    return Math.max(0, Math.min(45, Math.round(Math.log2(Math.max(1, microsecondsPerPixel * 2)))));
  }

  tile(level: number, index: number): Tile {
    const key = `${level}/${index}`;
    let tile = this.kept.get(key);
    if (tile === undefined) {
      tile = { level, index, counts: null, stale: false, asked: false };
      this.kept.set(key, tile);
      if (this.kept.size > MOST) this.kept.delete(this.kept.keys().next().value!);
    }
    if ((tile.counts === null || tile.stale) && !tile.asked) void this.ask(tile);
    return tile;
  }

  /** One that is there already and has the same stretch of time, at whatever level. */
  standIn(level: number, index: number): Tile | null {
    for (let up = 1; up <= 8; up++) {
      const found = this.kept.get(`${level + up}/${Math.floor(index / 2 ** up)}`);
      if (found?.counts) return found;
    }
    return null;
  }

  private async ask(tile: Tile): Promise<void> {
    const version = this.version;
    tile.asked = true;
    tile.stale = false;
    try {
      const query = { layer: this.layer, level: tile.level, index: tile.index, filter: this.filter || undefined };
      const counts = await getNumbers("tile", query);
      if (version === this.version) tile.counts = counts;
    } catch {
      tile.stale = true;
    }
    tile.asked = false;
    if (version === this.version) this.arrived();
  }
}
