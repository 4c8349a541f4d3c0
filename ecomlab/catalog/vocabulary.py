"""The words of the generated shop, as data: departments, product types, brands, features, attributes.

Nothing here is computed, so that a reader can check it by eye; tests/test_catalog.py checks the rest
(names three edits apart, values of a type that cannot be taken for one another, no word of the customer's
grammar in a phrase).  Every brand is invented.
"""

# key -> (name, how a customer says it, values).  The key is "name" or "name/where"; types refer to keys.
ATTRIBUTES: dict[str, tuple[str, str, str]] = {
    # electronics
    "connector": ("connector", "with {}", "USB-C, Lightning, Micro-USB, Barrel Jack"),
    "connector/audio": ("connector", "with {}", "USB-C, Lightning, Bluetooth, Mini Jack"),
    "connector/dock": ("connector", "with {}", "USB-C, USB-A, Thunderbolt, Mini DisplayPort"),
    "video": ("video", "with {} output", "HDMI, VGA, DVI"),
    "power": ("power", "with {} output", "20W, 45W, 65W, 100W"),
    "power/speaker": ("power", "with {} output", "10W, 30W, 50W, 80W"),
    "color/tech": ("color", "in {}", "Black, White, Silver, Graphite, Navy"),
    "cable": ("cable", "with a {} cable", "1 m, 2 m, 3 m"),
    "charge": ("charge", "with {} capacity", "5000 mAh, 10000 mAh, 20000 mAh"),
    "switches": ("switches", "with {} switches", "Linear, Tactile, Clicky, Silent"),
    "layout": ("layout", "with {} layout", "Full-Size, Tenkeyless, Split"),
    "grip": ("grip", "for the {} hand", "Left, Right"),
    "buttons": ("buttons", "with {}", "3 Buttons, 6 Buttons, 9 Buttons"),
    "sensor": ("sensor", "with a {} sensor", "Optical, Laser, Trackball, Infrared"),
    "microphone": ("microphone", "with a {} microphone", "Boom, Inline, Built-In"),
    "storage": ("storage", "with {} storage", "64 GB, 128 GB, 256 GB, 512 GB"),
    "storage/drive": ("storage", "with {} storage", "500 GB, 1 TB, 2 TB, 4 TB"),
    "speed": ("speed", "in speed class {}", "V10, V30, V60"),
    "works_with": ("works_with", "that works with {}", "Laptops, Tablets, Cameras, Consoles"),
    "resolution": ("resolution", "with {} video", "720p, 1080p, 1440p, 2160p"),
    "mount": ("mount", "with a {} mount", "Clip, Tripod, Suction"),
    "playtime": ("playtime", "with {} of playtime", "8 Hours, 12 Hours, 24 Hours"),
    "socket": ("socket", "with a {} socket", "Type A, Type B, Type F, Type G"),
    "hub": ("hub", "with {} control", "Zigbee, Matter, Bluetooth"),
    "lens": ("lens", "with a {} lens", "Wide-Angle, Autofocus, Fixed"),
    # kitchen
    "capacity": ("capacity", "with {} capacity", "1.5 L, 2.5 L, 4 L, 6 L"),
    "capacity/bowl": ("capacity", "with {} capacity", "500 ml, 900 ml, 1400 ml"),
    "cups": ("cups", "for {}", "4 Cups, 8 Cups, 10 Cups, 12 Cups"),
    "wattage": ("wattage", "with {} of power", "800W, 1200W, 1500W"),
    "color/kitchen": ("color", "in {}", "Red, Cream, Charcoal, Mint, White"),
    "controls": ("controls", "with {} controls", "Dial, Touch, Push-Button"),
    "wood": ("material", "made of {}", "Bamboo, Walnut, Maple, Teak, Acacia"),
    "shape": ("shape", "in a {} shape", "Round, Oval, Square"),
    "diameter": ("diameter", "with {} diameter", "20 cm, 24 cm, 28 cm, 32 cm"),
    "metal": ("material", "made of {}", "Cast Iron, Carbon Steel, Aluminum, Copper"),
    "handle": ("handle", "with a {} handle", "Silicone, Wooden, Folding"),
    "filter": ("filter", "with a {} filter", "Paper, Mesh, Gold Tone"),
    "bowl": ("material", "made of {}", "Steel, Glass, Ceramic, Melamine"),
    "finish/kettle": ("finish", "in {} finish", "Brushed, Polished, Hammered"),
    "slots": ("slots", "with {}", "5 Slots, 8 Slots, 12 Slots"),
    "slices": ("slices", "for {}", "1 Slice, 2 Slices, 4 Slices, 6 Slices"),
    "jar": ("jar", "with a {} jar", "Glass, Tritan, Steel"),
    "sheet": ("size", "in size {}", "Eighth Sheet, Quarter Sheet, Half Sheet, Jumbo Sheet"),
    "coating": ("coating", "with {} coating", "Granite, Enamel, Titanium"),
    "compartments": ("compartments", "with {}", "2 Compartments, 3 Compartments, 5 Compartments"),
    "lunch": ("material", "made of {}", "Steel, Bamboo, Silicone, Wheat Straw"),
    # clothing
    "size": ("size", "in size {}", "XS, S, M, L, XL, XXL"),
    "color/clothes": ("color", "in {}", "Black, Burgundy, Olive, Teal, Beige, Coral"),
    "fabric": ("fabric", "made of {}", "Cotton, Linen, Wool, Polyester, Bamboo"),
    "shell": ("fabric", "made of {}", "Nylon, Canvas, Fleece, Softshell"),
    "fit": ("fit", "with a {} fit", "Slim, Regular, Relaxed"),
    "pattern": ("pattern", "with a {} pattern", "Striped, Plaid, Floral, Dotted"),
    "sleeves": ("sleeves", "with {} sleeves", "Long, Short, Three-Quarter"),
    "closure": ("closure", "with a {} closure", "Zipper, Snap, Toggle, Button"),
    "lining": ("lining", "with {} lining", "Down, Sherpa, Quilted"),
    "length": ("length", "in {} length", "Knee, Ankle, Midi"),
    "collar": ("collar", "with a {} collar", "Spread, Mandarin, Cutaway"),
    # home
    "color/home": ("color", "in {}", "Ivory, Slate, Sage, Terracotta, Blush"),
    "finish": ("finish", "in {} finish", "Brass, Chrome, Bronze, Nickel, Pewter"),
    "bulb": ("bulb", "with a {} bulb", "LED, Edison, Halogen"),
    "filling": ("filling", "with {} filling", "Feather, Memory Foam, Polyester"),
    "rug_size": ("size", "in size {}", "80x150, 120x170, 160x230, 200x290"),
    "rug_fiber": ("material", "made of {}", "Jute, Wool, Cotton, Sisal"),
    "pile": ("pile", "with {} pile", "Flat, Shaggy, Looped"),
    "face": ("diameter", "with {} diameter", "25 cm, 30 cm, 40 cm, 60 cm"),
    "numerals": ("numerals", "with {} numerals", "Roman, Arabic, Braille"),
    "timber": ("material", "made of {}", "Oak, Pine, Birch, Mango Wood"),
    "shelves": ("shelves", "with {}", "3 Shelves, 4 Shelves, 6 Shelves"),
    "drop_length": ("length", "with {} length", "137 cm, 183 cm, 229 cm, 274 cm"),
    "opacity": ("opacity", "with {} fabric", "Sheer, Blackout, Thermal"),
    "bed_size": ("size", "in size {}", "Twin, Full, Queen, King"),
    "bedding": ("fabric", "made of {}", "Percale, Sateen, Flannel, Linen"),
    "weave": ("material", "made of {}", "Rattan, Seagrass, Wicker, Felt"),
    "outline": ("shape", "in a {} shape", "Arched, Round, Rectangular"),
    "candles": ("tapers", "for {}", "1 Taper, 3 Tapers, 5 Tapers, 7 Tapers"),
    # sports
    "mat": ("thickness", "with {} thickness", "3 mm, 4 mm, 6 mm, 8 mm"),
    "mat_stuff": ("material", "made of {}", "Cork, Natural Rubber, TPE"),
    "color/sport": ("color", "in {}", "Blue, Green, Orange, Purple, Gray"),
    "weight": ("weight", "weighing {}", "4 kg, 8 kg, 12 kg, 16 kg, 24 kg"),
    "weight_coat": ("coating", "with {} coating", "Vinyl, Neoprene, Powder"),
    "resistance": ("resistance", "with {} resistance", "Light, Medium, Heavy, Maximum"),
    "bottle": ("capacity", "with {} capacity", "350 ml, 600 ml, 750 ml, 1200 ml"),
    "bottle_stuff": ("material", "made of {}", "Steel, Glass, Tritan"),
    "cap": ("lid", "with a {} lid", "Straw, Flip, Screw"),
    "shoe_size": ("size", "in size {}", "US 7, US 8, US 9, US 10, US 11, US 12"),
    "terrain": ("terrain", "for {} running", "Road, Trail, Track"),
    "helmet": ("size", "in size {}", "52 cm, 55 cm, 58 cm, 61 cm"),
    "vents": ("vents", "with {}", "8 Vents, 14 Vents, 20 Vents"),
    "persons": ("capacity", "for {}", "1 Person, 2 Persons, 4 Persons, 6 Persons"),
    "season": ("season", "for {}", "Summer, Winter, All Seasons"),
    "volume": ("capacity", "with {} capacity", "20 L, 30 L, 45 L, 60 L"),
    "frame": ("frame", "with a {} frame", "Internal, External, Curved"),
    "warmth": ("temperature", "comfortable at {}", "15 C, 10 C, 5 C, 0 C"),
    "sack": ("shape", "in a {} shape", "Mummy, Barrel, Rectangular"),
    "racket": ("grip", "with {} grip", "Grip 1, Grip 2, Grip 3, Grip 4"),
    "racket_stuff": ("material", "made of {}", "Graphite, Aluminum, Carbon Fiber"),
    "swim": ("tint", "with {} tint", "Clear, Smoke, Mirror, Amber"),
    "strap": ("strap", "with a {} strap", "Silicone, Bungee, Split"),
    # beauty
    "scent": ("scent", "with {} scent", "Lavender, Citrus, Vanilla, Eucalyptus, Sandalwood"),
    "skin": ("skin", "for {} skin", "Dry, Oily, Sensitive, Mature"),
    "bottle_volume": ("volume", "in a {} bottle", "15 ml, 30 ml, 50 ml, 100 ml"),
    "active": ("active", "with {}", "Retinol, Niacinamide, Vitamin C, Squalane"),
    "balm": ("flavor", "with {} flavor", "Cherry, Honey, Peppermint, Coconut"),
    "protection": ("protection", "with {} protection", "SPF 15, SPF 30, SPF 50"),
    "curl": ("barrel", "with a {} barrel", "19 mm, 25 mm, 32 mm, 38 mm"),
    "plate": ("coating", "with {} coating", "Ceramic, Tourmaline, Titanium"),
    "color/beauty": ("color", "in {}", "Pink, Lilac, Champagne, Black"),
    "shade": ("shade", "in shade {}", "Ruby, Plum, Nude, Mauve, Rosewood"),
    "look": ("finish", "with {} finish", "Matte, Glossy, Shimmer"),
    "formula": ("formula", "with {} formula", "Gel, Acrylic, Water-Based"),
    "hair": ("hair", "for {} hair", "Curly, Straight, Color-Treated, Fine"),
    "pack": ("pack", "in a {}", "Pack of 4, Pack of 6, Pack of 9, Pack of 12"),
    "bristles": ("bristles", "with {} bristles", "Synthetic, Goat, Boar"),
    "brush": ("shape", "in a {} shape", "Angled, Fan, Tapered, Dome"),
    "note": ("note", "with {} notes", "Floral, Woody, Spicy, Fruity"),
    "tint": ("shade", "in shade {}", "Porcelain, Sand, Caramel, Espresso, Honey"),
    # toys
    "pieces": ("pieces", "with {}", "100 Pieces, 250 Pieces, 500 Pieces, 1000 Pieces"),
    "theme": ("theme", "with a {} theme", "Space, Jungle, Castle, Ocean"),
    "age": ("age", "for ages {}", "3-5, 6-8, 9-12"),
    "animal": ("animal", "shaped like a {}", "Bear, Rabbit, Elephant, Fox, Whale"),
    "plush": ("size", "with {} height", "20 cm, 35 cm, 50 cm"),
    "plush_stuff": ("material", "made of {}", "Corduroy, Velour, Cotton"),
    "picture": ("picture", "with a {} picture", "Landscape, World Map, Wildlife"),
    "gauge": ("scale", "in scale {}", "1:24, 1:32, 1:48, 1:87"),
    "toy_power": ("drive", "with {} drive", "Battery, Wind-Up, Push"),
    "color/toy": ("color", "in {}", "Red, Blue, Yellow, Green, Purple"),
    "floors": ("floors", "with {}", "1 Floor, 2 Floors, 3 Floors, 4 Floors"),
    "toy_stuff": ("material", "made of {}", "Beechwood, Birch, Plastic"),
    "span": ("wingspan", "with {} wingspan", "90 cm, 120 cm, 150 cm, 200 cm"),
    "tail": ("tail", "with a {} tail", "Ribbon, Spiral, Streamer"),
    "clay": ("colors", "with {}", "6 Colors, 12 Colors, 24 Colors, 36 Colors"),
    "clay_kind": ("base", "with a {} base", "Wax, Wheat, Polymer"),
    "keys": ("keys", "with {}", "25 Keys, 32 Keys, 49 Keys, 61 Keys"),
    "easel": ("height", "with {} height", "80 cm, 95 cm, 110 cm, 125 cm"),
    "board": ("surface", "with a {} surface", "Chalk, Dry-Erase, Magnet"),
    "seat": ("animal", "shaped like a {}", "Pony, Unicorn, Zebra, Dinosaur"),
    "wagon": ("load", "carrying {}", "30 kg, 40 kg, 55 kg, 70 kg"),
    "wheels": ("wheels", "with {} wheels", "Foam, Inflated, Solid"),
    # office
    "paper": ("format", "in {} format", "A4, A5, A6, B5"),
    "ruling": ("ruling", "with {} pages", "Lined, Grid, Dotted, Blank"),
    "cover": ("cover", "with a {} cover", "Leather, Linen, Kraft"),
    "ink": ("ink", "with {} ink", "Blue, Black, Green, Crimson"),
    "tip": ("tip", "with a {} tip", "0.3 mm, 0.5 mm, 0.7 mm, 1.0 mm"),
    "barrel": ("barrel", "with a {} barrel", "Metal, Acrylic, Rosewood"),
    "color/office": ("color", "in {}", "Black, White, Teal, Walnut, Gray"),
    "drawers": ("drawers", "with {}", "2 Drawers, 3 Drawers, 4 Drawers, 6 Drawers"),
    "office_stuff": ("material", "made of {}", "Mesh, Bamboo, Acrylic"),
    "sheets": ("sheets", "for {}", "20 Sheets, 40 Sheets, 60 Sheets, 100 Sheets"),
    "staple": ("drive", "with {} drive", "Manual, Electric, Spring"),
    "upholstery": ("upholstery", "with {} upholstery", "Mesh, Leather, Velvet, Fabric"),
    "arms": ("armrests", "with {} armrests", "Fixed, Padded, Flip-Up"),
    "folder": ("format", "in {} format", "Letter, Legal, Tabloid, A4"),
    "tabs": ("tabs", "with {}", "5 Tabs, 8 Tabs, 12 Tabs"),
    "whiteboard": ("size", "in size {}", "60x45, 90x60, 120x90, 180x120"),
    "edge": ("frame", "with a {} frame", "Aluminum, Oak, Plastic"),
    "writing": ("surface", "with a {} surface", "Glass, Porcelain, Melamine"),
    "stand": ("height", "with {} height", "8 cm, 12 cm, 15 cm, 18 cm"),
    "tape": ("tape", "for {} tape", "6 mm, 9 mm, 12 mm, 18 mm"),
    "keyboard": ("keys", "with {} keys", "QWERTY, QWERTZ, AZERTY"),
    "cut": ("cut", "with {} cut", "Strip, Cross, Micro, Confetti"),
    "bin": ("bin", "with a {} bin", "10 L, 15 L, 25 L"),
    "digits": ("digits", "with {}", "8 Digits, 10 Digits, 12 Digits, 16 Digits"),
    "supply": ("power", "with {} power", "Battery, Mains, Crank"),
    # garden
    "hose": ("length", "with {} length", "10 m, 15 m, 25 m, 50 m"),
    "hose_stuff": ("material", "made of {}", "Rubber, Vinyl, Latex"),
    "pot": ("diameter", "with {} diameter", "12 cm, 18 cm, 24 cm, 36 cm"),
    "pot_stuff": ("material", "made of {}", "Clay, Concrete, Fiberglass, Ceramic"),
    "color/garden": ("color", "in {}", "Gray, Rust, Ivory, Moss"),
    "blade": ("blade", "with a {} blade", "Bypass, Anvil, Ratchet, Curved"),
    "tool_handle": ("handle", "with a {} handle", "Ash, Fiberglass, Aluminum"),
    "can": ("capacity", "with {} capacity", "1.5 L, 4 L, 7 L, 10 L"),
    "can_stuff": ("material", "made of {}", "Zinc, Copper, Plastic"),
    "shade_size": ("diameter", "with {} diameter", "2 m, 2.7 m, 3 m, 3.5 m"),
    "canopy": ("color", "in {}", "Navy, Taupe, Olive, Crimson"),
    "tilt": ("tilt", "with {} tilt", "Crank, Push, Collar"),
    "bird": ("bird", "for {}", "Finches, Hummingbirds, Cardinals, Woodpeckers"),
    "feeder": ("material", "made of {}", "Cedar, Copper, Glass"),
    "bed": ("size", "in size {}", "60x60, 120x60, 180x90, 240x120"),
    "bed_stuff": ("material", "made of {}", "Cedar, Galvanized Steel, Plastic"),
    "barrow": ("capacity", "with {} capacity", "65 L, 85 L, 100 L, 160 L"),
    "tire": ("tire", "with a {} tire", "Foam, Pneumatic, Solid"),
    "lumens": ("brightness", "with {}", "10 Lumens, 25 Lumens, 50 Lumens, 100 Lumens"),
    "glow": ("light", "with {} light", "Amber, Daylight, Multicolor"),
    "spread": ("size", "in size {}", "Single, Double, Family, Travel"),
    "net": ("material", "made of {}", "Cotton, Canvas, Nylon, Rope"),
    "seeds": ("plants", "with {}", "Herbs, Tomatoes, Wildflowers, Salad Greens"),
    "soil": ("soil", "with {} soil", "Peat, Coco, Loam"),
    "tray": ("tray", "with a {} tray", "6-Cell, 12-Cell, 24-Cell"),
    # pets
    "leash": ("length", "with {} length", "1 m, 1.5 m, 2 m, 3 m"),
    "leash_stuff": ("material", "made of {}", "Nylon, Leather, Rope, Biothane"),
    "color/pet": ("color", "in {}", "Red, Turquoise, Gray, Tan, Purple"),
    "tree": ("levels", "with {}", "2 Levels, 3 Levels, 4 Levels, 5 Levels"),
    "tree_stuff": ("cover", "with a {} cover", "Sisal, Plush, Carpet"),
    "pet_size": ("size", "in size {}", "Small, Medium, Large, Giant"),
    "pet_filling": ("filling", "with {} filling", "Memory Foam, Cotton, Gel"),
    "buckle": ("buckle", "with a {} buckle", "Snap, Metal, Magnetic Clasp"),
    "litter": ("entry", "with {} entry", "Top, Front, Side, Swing"),
    "hood": ("capacity", "with {} capacity", "15 L, 25 L, 40 L"),
    "dish": ("capacity", "with {} capacity", "200 ml, 400 ml, 700 ml, 1100 ml"),
    "dish_stuff": ("material", "made of {}", "Steel, Ceramic, Bamboo, Silicone"),
    "chew": ("texture", "with {} texture", "Spiked, Ribbed, Smooth, Knotted"),
    "chew_stuff": ("material", "made of {}", "Rubber, Nylon, Rope"),
    "door": ("door", "with {}", "1 Door, 2 Doors, 3 Doors"),
    "tank": ("capacity", "for {} tanks", "20 L, 40 L, 90 L, 150 L"),
    "media": ("media", "with {} media", "Sponge, Carbon, Ceramic"),
    "post": ("height", "with {} height", "45 cm, 60 cm, 75 cm, 90 cm"),
    "post_stuff": ("material", "made of {}", "Sisal, Jute, Cardboard"),
    "flavor": ("flavor", "with {} flavor", "Chicken, Beef, Salmon, Peanut, Pumpkin"),
    "bag": ("weight", "in a {} bag", "200 g, 500 g, 900 g"),
    "bite": ("texture", "in {} form", "Crunchy, Soft, Freeze-Dried"),
    "cage": ("spacing", "with {} bar spacing", "10 mm, 13 mm, 16 mm, 20 mm"),
}

# department -> its brands, its features, and its types: name | plural | option | attributes | price, spread
DEPARTMENTS: dict[str, tuple[str, str, str]] = {
    "electronics": (
        "SonicWave PixelVault VoltHarbor BlazeTempo NimbusByte EchoLattice BrightQuark OrbitSpark LumenFox "
        "WattWillow InkHarbor KineticElk",
        "Compact, Portable, High-Performance, Lightweight, Wireless, Premium, Professional, Rugged",
        """
        Phone Charger | Phone Chargers | connector | power color/tech cable | 24 .45
        Power Bank | Power Banks | connector | charge color/tech | 38 .4
        Keyboard | Keyboards | switches | layout color/tech works_with | 62 .5
        Computer Mouse | Computer Mice | sensor | grip buttons color/tech | 32 .5
        Headset | Headsets | connector/audio | microphone color/tech works_with | 68 .55
        Docking Station | Docking Stations | connector/dock | video power | 95 .45
        Memory Card | Memory Cards | storage | speed works_with | 28 .5
        External Drive | External Drives | storage/drive | color/tech works_with | 88 .4
        Webcam | Webcams | resolution | mount lens | 54 .45
        Outlet Switch | Outlet Switches | socket | hub color/tech | 22 .35
        Speaker | Speakers | power/speaker | playtime color/tech | 74 .6
        """,
    ),
    "kitchen": (
        "AquaPure CopperThyme SimmerStone GreenLeaf PantryLark BasilForge KettleMoor SaffronOak CrispHarvest "
        "HearthMint HomeNest CedarLoft",
        "Eco-Friendly, Compact, Stackable, Heavy-Duty, Rustic, Durable, Modern, Handmade",
        """
        Air Fryer | Air Fryers | capacity | wattage controls color/kitchen | 92 .4
        Cutting Board | Cutting Boards | wood | shape handle | 27 .45
        Skillet | Skillets | diameter | metal handle | 39 .5
        Coffee Maker | Coffee Makers | cups | filter color/kitchen | 66 .5
        Mixing Bowl | Mixing Bowls | bowl | capacity/bowl color/kitchen | 21 .4
        Tea Kettle | Tea Kettles | capacity | finish/kettle wattage | 42 .4
        Knife Block | Knife Blocks | wood | slots color/kitchen | 48 .45
        Toaster | Toasters | slices | wattage color/kitchen | 44 .4
        Blender | Blenders | capacity | jar wattage | 71 .5
        Baking Tray | Baking Trays | sheet | coating metal | 19 .35
        Lunch Box | Lunch Boxes | lunch | compartments color/kitchen | 23 .35
        """,
    ),
    "clothing": (
        "ThreadHaven LinenCove WoolWander DriftSeam VelvetPine StitchRidge NorthWeft PeakStrider MarlowLoom "
        "TrailTwill SilkAurora StormPaddle",
        "Lightweight, Breathable, Reversible, Vintage, Everyday, Premium, Stretchy, Quick-Dry",
        """
        Hoodie | Hoodies | size | color/clothes shell closure | 46 .4
        Rain Jacket | Rain Jackets | size | color/clothes shell closure | 78 .45
        Cardigan | Cardigans | size | color/clothes fabric pattern | 54 .4
        Dress Shirt | Dress Shirts | size | color/clothes fit collar | 48 .4
        Sundress | Sundresses | size | color/clothes pattern length | 44 .4
        Polo Shirt | Polo Shirts | size | color/clothes fit sleeves | 34 .35
        Pajama Set | Pajama Sets | size | color/clothes fabric pattern | 41 .35
        Bathrobe | Bathrobes | size | color/clothes fabric length | 52 .4
        Winter Coat | Winter Coats | size | color/clothes lining closure | 139 .45
        Tank Top | Tank Tops | size | color/clothes fabric fit | 19 .35
        """,
    ),
    "home": (
        "HomeNest CedarLoft AmberAlcove CozyLantern HarborHaus MossMantel PlumCottage LinenCove GableStone "
        "WrenHollow VelvetPine GreenLeaf",
        "Modern, Rustic, Vintage, Minimalist, Handmade, Eco-Friendly, Washable, Deluxe",
        """
        Table Lamp | Table Lamps | finish | bulb color/home | 49 .45
        Throw Pillow | Throw Pillows | color/home | filling pattern | 24 .35
        Area Rug | Area Rugs | rug_size | rug_fiber pile color/home | 119 .6
        Wall Clock | Wall Clocks | face | numerals finish | 36 .4
        Bookshelf | Bookshelves | timber | shelves color/home | 128 .5
        Curtain Panel | Curtain Panels | drop_length | opacity color/home | 31 .4
        Floor Mirror | Floor Mirrors | finish | outline bulb | 112 .45
        Storage Basket | Storage Baskets | weave | outline color/home | 26 .4
        Duvet Cover | Duvet Covers | bed_size | bedding color/home | 64 .4
        Candle Holder | Candle Holders | candles | finish outline | 22 .45
        """,
    ),
    "sports": (
        "PeakStrider IronMeadow SwiftGlacier BlazeTempo KineticElk RapidHeron BoulderFlex StormPaddle "
        "TerraSprint WoolWander TrailTwill AquaPure",
        "Lightweight, Foldable, Non-Slip, Rugged, Beginner, High-Performance, Adjustable, Durable",
        """
        Yoga Mat | Yoga Mats | mat | mat_stuff color/sport | 34 .4
        Kettlebell | Kettlebells | weight | weight_coat color/sport | 39 .45
        Resistance Band | Resistance Bands | resistance | hose_stuff color/sport | 16 .35
        Water Bottle | Water Bottles | bottle | bottle_stuff cap color/sport | 22 .35
        Running Shoe | Running Shoes | shoe_size | terrain color/sport | 94 .4
        Bike Helmet | Bike Helmets | helmet | vents color/sport | 58 .45
        Camping Tent | Camping Tents | persons | season color/sport | 148 .5
        Hiking Backpack | Hiking Backpacks | volume | frame color/sport | 96 .45
        Sleeping Bag | Sleeping Bags | warmth | sack color/sport | 79 .45
        Tennis Racket | Tennis Rackets | racket | racket_stuff color/sport | 84 .5
        Snorkel Mask | Snorkel Masks | swim | strap color/sport | 19 .35
        """,
    ),
    "beauty": (
        "GlowPetal RoseMeridian DewBlossom SilkAurora AquaPure PearlMist HoneyLotus BloomRitual CoralVeil "
        "JasmineTide GreenLeaf SaffronOak",
        "Organic, Fragrance-Free, Eco-Friendly, Hypoallergenic, Travel-Size, Professional, Everyday, Deluxe",
        """
        Face Serum | Face Serums | bottle_volume | active skin | 28 .5
        Lip Balm | Lip Balms | balm | protection look | 8 .4
        Body Lotion | Body Lotions | scent | skin bottle_volume | 16 .4
        Curling Iron | Curling Irons | curl | plate color/beauty | 58 .5
        Nail Polish | Nail Polishes | shade | look formula | 9 .35
        Shampoo | Shampoos | scent | hair active | 14 .4
        Bath Bomb | Bath Bombs | pack | scent color/beauty | 18 .35
        Makeup Brush | Makeup Brushes | brush | bristles color/beauty | 15 .45
        Perfume | Perfumes | bottle_volume | note color/beauty | 64 .5
        Foundation | Foundations | tint | look protection | 26 .4
        """,
    ),
    "toys": (
        "WonderSprout TinyComet RiddleOtter GiggleGrove PaperFalcon DoodleDragon JollyAcorn RocketPanda "
        "StoryTurtle SunnyZeppelin FetchForest MemoFinch",
        "Educational, Interactive, Classic, Handmade, Vintage, Deluxe, Washable, Durable",
        """
        Building Set | Building Sets | pieces | theme age | 39 .5
        Jigsaw Puzzle | Jigsaw Puzzles | pieces | picture age | 19 .4
        Plush Animal | Plush Animals | animal | plush plush_stuff | 24 .4
        Model Train | Model Trains | gauge | toy_power color/toy | 64 .5
        Doll House | Doll Houses | floors | toy_stuff theme | 88 .5
        Stunt Kite | Stunt Kites | span | tail color/toy | 26 .4
        Clay Kit | Clay Kits | clay | clay_kind age | 17 .35
        Toy Piano | Toy Pianos | keys | color/toy toy_power | 46 .45
        Art Easel | Art Easels | easel | board toy_stuff | 52 .4
        Rocking Horse | Rocking Horses | seat | toy_stuff color/toy | 94 .45
        Pull Wagon | Pull Wagons | wagon | wheels color/toy | 82 .4
        """,
    ),
    "office": (
        "InkHarbor PaperFalcon PixelVault LedgerLane QuillSummit ClipMeadow MemoFinch FolioCrane TidyBureau "
        "MarginMaple LumenFox GableStone",
        "Ergonomic, Professional, Recycled, Minimalist, Heavy-Duty, Adjustable, Modern, Classic",
        """
        Notebook | Notebooks | paper | ruling cover | 14 .4
        Rollerball Pen | Rollerball Pens | tip | ink barrel | 9 .45
        Desk Organizer | Desk Organizers | drawers | office_stuff color/office | 29 .4
        Stapler | Staplers | sheets | staple color/office | 18 .4
        Office Chair | Office Chairs | upholstery | arms color/office | 164 .5
        File Folder | File Folders | folder | tabs color/office | 13 .35
        Whiteboard | Whiteboards | whiteboard | edge writing | 52 .5
        Monitor Stand | Monitor Stands | stand | office_stuff color/office | 42 .45
        Label Printer | Label Printers | tape | keyboard supply | 58 .4
        Document Shredder | Document Shredders | cut | bin supply | 89 .45
        Calculator | Calculators | digits | supply color/office | 21 .5
        """,
    ),
    "garden": (
        "GreenLeaf RootHaven SoilSparrow GableStone BloomAcre OrchardWren SproutLane ThistleBarn CloverPatch "
        "RainBarley IronMeadow AmberAlcove",
        "Weather-Resistant, Heavy-Duty, Foldable, Handmade, Eco-Friendly, Lightweight, Rustic, Durable",
        """
        Garden Hose | Garden Hoses | hose | hose_stuff color/garden | 36 .4
        Flower Pot | Flower Pots | pot | pot_stuff color/garden | 22 .45
        Hedge Trimmer | Hedge Trimmers | blade | tool_handle color/garden | 27 .4
        Watering Can | Watering Cans | can | can_stuff color/garden | 24 .35
        Patio Umbrella | Patio Umbrellas | shade_size | canopy tilt | 98 .45
        Bird Feeder | Bird Feeders | bird | feeder color/garden | 29 .4
        Raised Bed | Raised Beds | bed | bed_stuff color/garden | 87 .45
        Wheelbarrow | Wheelbarrows | barrow | tire tool_handle | 106 .4
        Path Light | Path Lights | lumens | glow color/garden | 33 .4
        Hammock | Hammocks | spread | net canopy | 68 .45
        Seed Kit | Seed Kits | seeds | tray soil | 19 .35
        """,
    ),
    "pets": (
        "PawMeadow WhiskerBay FurHollow TailWillow BarkHarbor PurrLane FetchForest HarborHaus HappyMuzzle "
        "WagSummit RootHaven PantryLark",
        "Washable, Durable, Chew-Proof, Reflective, Adjustable, Portable, Non-Slip, Premium",
        """
        Dog Leash | Dog Leashes | leash | leash_stuff color/pet | 21 .35
        Cat Tree | Cat Trees | tree | tree_stuff color/pet | 86 .45
        Pet Bed | Pet Beds | pet_size | pet_filling color/pet | 48 .45
        Dog Collar | Dog Collars | pet_size | leash_stuff buckle | 17 .35
        Litter Box | Litter Boxes | litter | hood color/pet | 39 .4
        Food Bowl | Food Bowls | dish | dish_stuff color/pet | 16 .35
        Chew Toy | Chew Toys | chew | chew_stuff color/pet | 12 .35
        Pet Carrier | Pet Carriers | pet_size | door color/pet | 54 .4
        Aquarium Filter | Aquarium Filters | tank | media color/pet | 37 .45
        Scratching Post | Scratching Posts | post | post_stuff color/pet | 34 .4
        Dog Treat | Dog Treats | flavor | bag bite | 13 .4
        Bird Cage | Bird Cages | cage | door color/pet | 92 .45
        """,
    ),
}
