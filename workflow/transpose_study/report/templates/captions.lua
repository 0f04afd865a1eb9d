-- Turns "**Table 3.** text" before a table, and an image followed by "**Figure 2.** text", into captions,
-- and a paragraph that begins with "*Notes.*" into a block of class "notes"; in every language of the report.

local WORDS = { Table = { "Table", "表" }, Figure = { "Figure", "图" } }
local NOTES = { ["Notes."] = true, ["注："] = true }

local LONGEST_KEPT = 26 -- rows of a table that is kept on one printed page
local WIDE = 9 -- columns from which a printed table is set smaller

local GROUP = "▸ " -- begins the name of a group of rows

local function starts_with(block, word)
  if block == nil or block.t ~= "Para" then return false end
  local first = block.content[1]
  if first == nil or first.t ~= "Strong" then return false end
  for _, translated in ipairs(WORDS[word]) do
    if pandoc.utils.stringify(first):sub(1, #translated + 1) == translated .. " " then return true end
  end
  return false
end

local function is_image(block)
  return block ~= nil and (block.t == "Para" or block.t == "Plain") and #block.content == 1 and block.content[1].t == "Image"
end

local function is_notes(block)
  return block.t == "Para" and block.content[1] ~= nil and block.content[1].t == "Emph"
    and NOTES[pandoc.utils.stringify(block.content[1])] ~= nil
end

local function identifier(block, word)
  return word:lower() .. "-" .. pandoc.utils.stringify(block.content[1]):match("%d+")
end

-- A row that only names the group of the rows below it becomes the first line of the next row, so that no page ends with it.
local function join_group_names(rows)
  local result = pandoc.List{}
  local name = nil
  for _, row in ipairs(rows) do
    local first = row.cells[1].contents[1]
    if first ~= nil and pandoc.utils.stringify(first):sub(1, #GROUP) == GROUP then
      name = first.content
    else
      for column, cell in ipairs(row.cells) do
        local content = cell.contents[1]
        if name ~= nil and content ~= nil then
          local line = column == 1 and pandoc.Inlines(name) or pandoc.Inlines{pandoc.Str("\u{a0}")}
          line:insert(pandoc.LineBreak())
          line:extend(content.content)
          content.content = line
        end
      end
      name = nil
      result:insert(row)
    end
  end
  return result
end

function Blocks(blocks)
  local result = pandoc.Blocks{}
  local i = 1
  while i <= #blocks do
    local this, after = blocks[i], blocks[i + 1]
    if starts_with(this, "Table") and after ~= nil and after.t == "Table" then
      after.caption = pandoc.Caption({pandoc.Plain(this.content)})
      after.attr = pandoc.Attr(identifier(this, "Table"), {}, {})
      local around = {}
      local lines = #after.bodies[1].body
      if FORMAT == "typst" then after.bodies[1].body = join_group_names(after.bodies[1].body) end
      if FORMAT == "typst" and lines <= LONGEST_KEPT then table.insert(around, "keep") end
      if FORMAT == "typst" and #after.colspecs >= WIDE then table.insert(around, "wide") end
      for _, name in ipairs(around) do result:insert(pandoc.RawBlock("typst", "#" .. name .. "[")) end
      result:insert(after)
      for _ in ipairs(around) do result:insert(pandoc.RawBlock("typst", "]")) end
      i = i + 2
    elseif is_image(this) and starts_with(after, "Figure") then
      result:insert(pandoc.Figure({pandoc.Plain(this.content)}, pandoc.Caption({pandoc.Plain(after.content)}), pandoc.Attr(identifier(after, "Figure"))))
      i = i + 2
    elseif is_notes(this) then
      if FORMAT == "typst" then
        result:extend({pandoc.RawBlock("typst", "#notes["), this, pandoc.RawBlock("typst", "]")})
      else
        result:insert(pandoc.Div({this}, pandoc.Attr("", {"notes"})))
      end
      i = i + 1
    else
      result:insert(this)
      i = i + 1
    end
  end
  return result
end
