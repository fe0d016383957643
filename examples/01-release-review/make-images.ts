/**
 * Draws the screenshots in `before/ui` and `after/ui`, so that the example needs no browser. Run it to write them again:
 * the pictures depend on nothing but this file.
 */
import { writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { PNG } from "pngjs";

type Colour = readonly [red: number, green: number, blue: number];

const WHITE: Colour = [255, 255, 255];
const PAPER: Colour = [244, 245, 247];
const LINE: Colour = [214, 218, 224];
const INK: Colour = [32, 38, 46];
const MUTED: Colour = [110, 118, 129];
const NAVY: Colour = [27, 54, 93];
const GREEN: Colour = [32, 128, 84];
const AMBER: Colour = [191, 122, 16];

/** Glyphs three pixels wide and five high; each octal digit is a row, its bits the pixels from left to right. */
const GLYPHS: ReadonlyMap<string, string> = readGlyphs(`
  A25755 B65656 C34443 D65556 E74647 F74644 G34553 H55755 I72227 J11152 K55655 L44447 M57755 N65555 O25552
  P65644 Q25563 R65655 S34216 T72222 U55557 V55552 W55775 X55255 Y55222 Z71247 .00002 -00700 #57575 :02020
  075557 126227 271747 371717 455711 574717 674757 771111 875757 975717
`);

function readGlyphs(list: string): ReadonlyMap<string, string> {
  return new Map(
    [...list.matchAll(/(\S)(\d{5})/g)].map(([, character = "", rows = ""]) => [character, rows]),
  );
}

class Canvas {
  private readonly png: PNG;

  constructor(width: number, height: number) {
    this.png = new PNG({ width, height });
    this.fill(0, 0, width, height, PAPER);
  }

  fill(left: number, top: number, width: number, height: number, [red, green, blue]: Colour): void {
    for (let y = top; y < top + height; y += 1) {
      for (let x = left; x < left + width; x += 1) {
        this.png.data.set([red, green, blue, 255], (y * this.png.width + x) * 4);
      }
    }
  }

  /** Writes text, its top left corner at the given place; every glyph pixel is `scale` pixels wide and high. */
  text(left: number, top: number, content: string, colour: Colour, scale = 2): void {
    for (let position = 0; position < content.length; position += 1) {
      const rows = GLYPHS.get(content.charAt(position).toUpperCase()) ?? "";
      for (let y = 0; y < rows.length; y += 1) {
        for (let x = 0; x < 3; x += 1) {
          const isSet = (Number(rows.charAt(y)) & (4 >> x)) !== 0;
          if (isSet) this.fill(left + (position * 4 + x) * scale, top + y * scale, scale, scale, colour);
        }
      }
    }
  }

  toPng(): Buffer {
    return PNG.sync.write(this.png);
  }
}

interface OrderRow {
  readonly id: string;
  readonly customer: string;
  readonly status: string;
  readonly total: string;
}

const ORDERS: readonly OrderRow[] = [
  { id: "#260", customer: "Amara Wang", status: "Delivered", total: "EUR 84.10" },
  { id: "#259", customer: "Jonas Moreira", status: "Delivered", total: "EUR 12.95" },
  { id: "#258", customer: "Ines Sato", status: "Shipped", total: "EUR 230.00" },
  { id: "#257", customer: "Hiro Lindqvist", status: "Paid", total: "EUR 49.90" },
  { id: "#256", customer: "Greta Haddad", status: "Pending", total: "CHF 18.45" },
];

function drawFrame(title: string): Canvas {
  const canvas = new Canvas(480, 320);
  canvas.fill(0, 0, 480, 36, NAVY);
  canvas.text(16, 13, title, WHITE);
  return canvas;
}

/** The list of orders; the new version shows a held order and a link to the parcel of a shipped one. */
function drawOrderList(version: "before" | "after"): Buffer {
  const canvas = drawFrame("Orders");
  canvas.fill(16, 52, 448, 248, LINE);
  canvas.fill(17, 53, 446, 246, WHITE);
  for (const [left, heading] of [
    [28, "No"],
    [84, "Customer"],
    [236, "Status"],
    [352, "Total"],
  ] as const) {
    canvas.text(left, 64, heading, MUTED);
  }
  ORDERS.forEach((order, index) => {
    const top = 84 + index * 42;
    const isHeld = version === "after" && order.status === "Pending";
    canvas.fill(17, top, 446, 1, LINE);
    canvas.text(28, top + 16, order.id, INK);
    canvas.text(84, top + 16, order.customer, INK);
    canvas.fill(228, top + 10, 88, 22, isHeld ? AMBER : GREEN);
    canvas.text(236, top + 16, isHeld ? "On hold" : order.status, WHITE);
    canvas.text(352, top + 16, order.total, INK);
    if (version === "after" && order.status === "Shipped")
      canvas.text(236, top + 35, "Track parcel", NAVY, 1);
  });
  return canvas.toPng();
}

/** One order; the same in both versions. */
function drawOrderDetail(): Buffer {
  const canvas = drawFrame("Order #258");
  canvas.fill(16, 52, 448, 120, WHITE);
  canvas.text(28, 66, "Ines Sato", INK, 3);
  canvas.text(28, 96, "Placed 2025-04-05 07:06", MUTED);
  canvas.text(28, 120, "Total EUR 230.00", INK);
  canvas.fill(28, 142, 88, 20, GREEN);
  canvas.text(36, 147, "Shipped", WHITE);
  canvas.fill(16, 188, 448, 112, WHITE);
  ["2 x SKU-017", "1 x SKU-048"].forEach((item, index) => canvas.text(28, 204 + index * 28, item, INK));
  canvas.fill(28, 262, 120, 26, NAVY);
  canvas.text(40, 270, "Cancel order", WHITE);
  return canvas.toPng();
}

/** All screenshots, by their path below this folder. */
export function drawScreens(): ReadonlyMap<string, Buffer> {
  return new Map([
    ["before/ui/order-list.png", drawOrderList("before")],
    ["before/ui/order-detail.png", drawOrderDetail()],
    ["after/ui/order-list.png", drawOrderList("after")],
    ["after/ui/order-detail.png", drawOrderDetail()],
  ]);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const [path, png] of drawScreens()) await writeFile(new URL(path, import.meta.url), png);
}
